// Tests how the lists classify domains and local parts, including the operator's changes.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type ListChanges, loadAddressLists } from './address-lists.ts'
import { suggestProvider } from './suggest-provider.ts'

const none = { added: new Set<string>(), removed: new Set<string>() }
const unchanged: ListChanges = { disposable: none, freeProviders: none, roles: none }
const lists = await loadAddressLists(unchanged)

const domains: [domain: string, isDisposable: boolean, isFreeProvider: boolean][] = [
  ['gmail.com', false, true],
  ['web.de', false, true],
  ['tuta.com', false, true],
  ['example.com', false, false],
  ['mailinator.com', true, false],
  ['deep.under.mailinator.com', true, false],
  ['mailinator.com.example.com', false, false],
  ['com', false, false],
  ['localhost', false, false],
  // It is on the list and is a public suffix, so domains below it belong to others.
  ['ddns.net', true, false],
  ['somebody.ddns.net', false, false],
  ['mail.gmail.com', false, false],
]

for (const [domain, isDisposable, isFreeProvider] of domains)
  test(`check 79: ${domain} is on the lists: disposable ${isDisposable}, free ${isFreeProvider}`, () => {
    assert.equal(lists.isDisposable(domain), isDisposable)
    assert.equal(lists.isFreeProvider(domain), isFreeProvider)
  })

const localParts: [localPart: string, isRole: boolean][] = [
  ['postmaster', true],
  ['Info', true],
  ['no-reply', true],
  ['noreply+list', true],
  ['do.not_reply', true],
  ['ada', false],
  ['information', false],
  ['ada+info', false],
  ['', false],
]

for (const [localPart, isRole] of localParts)
  test(`check 79: "${localPart}" is ${isRole ? 'a' : 'not a'} role`, () => {
    assert.equal(lists.isRole(localPart), isRole)
  })

const meant: [domain: string, provider: string | null][] = [
  ['gmail.con', 'gmail.com'],
  ['gmail.co', 'gmail.com'],
  ['gmial.com', 'gmail.com'],
  ['gamil.com', 'gmail.com'],
  ['mgail.com', 'gmail.com'],
  ['gmailcom', 'gmail.com'],
  ['yahooo.com', 'yahoo.com'],
  ['yaho.co.uk', 'yahoo.co.uk'],
  ['hotmal.co', 'hotmail.com'],
  ['outlok.com', 'outlook.com'],
  ['protonmial.com', 'protonmail.com'],
  // gmaıl.com with a dotless i
  ['xn--gmal-nza.com', 'gmail.com'],
  // Domains that exist, although they are one letter away from a provider.
  ['gmail.com', null],
  ['mail.com', null],
  ['ymail.com', null],
  ['hotmail.se', null],
  ['yahoo.com.au', null],
  ['cloud.com', null],
  ['outback.com', null],
  ['me.com', null],
  ['gmx.ch', null],
  ['example.com', null],
  ['a'.repeat(60), null],
]

for (const [domain, provider] of meant)
  test(`check 79: ${domain} is ${provider ? `a typo of ${provider}` : 'not a typo'}`, () => {
    assert.equal(lists.suggestDomain(domain), provider)
  })

test('check 79: the operator’s files add domains to the lists and remove domains with their subdomains', async () => {
  const changed = await loadAddressLists({
    disposable: { added: new Set(['throw.example']), removed: new Set(['mailinator.com']) },
    freeProviders: { added: new Set(['free.example']), removed: new Set(['web.de']) },
    roles: { added: new Set(['frontdesk']), removed: new Set(['info']) },
  })
  const disposable = ['throw.example', 'x.throw.example', 'mailinator.com', 'x.mailinator.com', 'yopmail.com']
  assert.deepEqual(
    disposable.map((domain) => changed.isDisposable(domain)),
    [true, true, false, false, true],
  )
  assert.deepEqual(
    ['free.example', 'web.de', 'gmx.de'].map((domain) => changed.isFreeProvider(domain)),
    [true, false, true],
  )
  assert.deepEqual(
    ['front-desk', 'info', 'sales'].map((localPart) => changed.isRole(localPart)),
    [true, false, true],
  )
  assert.equal(changed.suggestDomain('web.de'), null)
})

test('check 79: a suggestion differs from the domain and needs no further suggestion', () => {
  const letters = fc.string({ unit: fc.constantFrom(...'gmailyhotoukcde.-1'), maxLength: 260 })
  fc.assert(
    fc.property(fc.oneof(letters, fc.domain()), (domain) => {
      const provider = suggestProvider(domain)
      if (provider === null) return
      assert.notEqual(provider, domain)
      assert.equal(suggestProvider(provider), null)
    }),
    { numRuns: 2000 },
  )
})
