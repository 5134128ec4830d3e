// Names chosen by strangers follow our own words in a letter and never become links.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { approvalLetter, invitationLetter, requestLetter, withoutLinks } from './letters.ts'

const names: [given: string, written: string][] = [
  ['Example Ltd.', 'Example Ltd.'],
  ['Dr. Ada, Inc. (Berlin)', 'Dr. Ada, Inc. (Berlin)'],
  ['Verify at https://evil.test/a.b', 'Verify at https[:]//evil[.]test/a[.]b'],
  ['evil.test or evil。test', 'evil[.]test or evil[.]test'],
  ['a@evil.test mailto:a', 'a[at]evil[.]test mailto[:]a'],
  ['evil\u200b.\u200btest \u202eflipped', 'evil[.]test flipped'],
]

for (const [given, written] of names)
  test(`hostile 20: a name in a letter makes no link: ${JSON.stringify(given)}`, () =>
    assert.equal(withoutLinks(given), written))

test('hostile 20: an invitation’s subject and first words are our own', () => {
  const organizationName = 'Your account is locked - https://evil.test'
  const given = { organizationName, invitedBy: 'ada@far.test', role: 'member' }
  const { subject, text } = invitationLetter(given, 'https://mail.example.com/invitation#secret')
  assert.equal(subject, 'You are invited to an organization')
  assert.match(text, /^Somebody invites you to an organization at Posthorn, as member\./)
  assert.ok(text.includes('Your account is locked - https[:]//evil[.]test\n'))
})

test('a letter about an organization has our own subject and first words', () => {
  const organization = { id: '1', name: 'Pay at https://evil.test', owners: ['ada@far.test'] }
  const desk = 'http://127.0.0.1:8026/#/approvals'
  const request = requestLetter(organization, desk)
  assert.equal(request.subject, 'An organization asks for access')
  assert.match(request.text, /^Somebody asks for access .*\n\nhttp:\/\/127\.0\.0\.1:8026\/#\/approvals\n/)
  const approval = approvalLetter(organization, 'https://mail.example.com')
  assert.equal(approval.subject, 'Your organization is approved')
  assert.match(approval.text, /^The operator of this Posthorn service .*\n\nhttps:\/\/mail\.example\.com\n/)
  for (const { text } of [request, approval]) assert.ok(text.includes('Pay at https[:]//evil[.]test\n'))
})
