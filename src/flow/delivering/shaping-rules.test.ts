// Destination groups: which group a mail server belongs to, and which replies mean that we send too much.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ReplyStage } from '../../mail/bounce/reply-code.ts'
import {
  builtInRules,
  groupOf,
  loadOf,
  mayEndConnectionOnly,
  meansBlocked,
  ruleFor,
  usualRules,
} from './shaping-rules.ts'

test('shaping: a group is the provider of the mail server, or its registered domain', () => {
  const names: [string, string, string][] = [
    ['gmail.com', 'alt1.gmail-smtp-in.l.google.com', 'google'],
    ['firm.example', 'ASPMX2.GOOGLEMAIL.COM', 'google'],
    ['hotmail.com', 'hotmail-com.olc.protection.outlook.com', 'microsoft'],
    ['firm.example', 'firm-example.mail.protection.outlook.com', 'microsoft'],
    ['yahoo.com', 'mta5.am0.yahoodns.net', 'yahoo'],
    ['a.example', 'mx1.mail.host.co.uk', 'host.co.uk'],
    // Names of strangers that only resemble a provider's.
    ['evil.example', 'mx.google.com.evil.com', 'evil.com'],
    ['evil.example', 'notgoogle.com', 'notgoogle.com'],
    ['@relay', 'smtp.google.com', '@relay'],
    ['requiretls:@relay', 'smtp.google.com', '@relay'],
  ]
  for (const [route, host, name] of names) assert.equal(groupOf(builtInRules, route, host).name, name, host)
})

test('shaping: only replies about load count', () => {
  const replies: [number, string | null, string, ReturnType<typeof loadOf>][] = [
    [421, '4.7.0', 'try again later', 'possible'],
    [421, null, 'closing', 'possible'],
    [421, null, 'too many messages in this connection', 'possible'],
    [421, '4.4.2', 'timeout exceeded', null],
    [450, '4.7.28', 'unusual rate of mail', 'rate'],
    [452, '4.3.2', 'too many messages', 'rate'],
    [451, '4.7.1', 'please wait', 'possible'],
    [451, '4.7.1', 'Greylisted, see you in five minutes', null],
    [450, '4.2.1', 'The user is receiving mail at a rate that prevents delivery', null],
    [452, '4.2.2', 'mailbox full', null],
    [550, '5.7.1', 'too many messages', null],
    [421, '4.7.0', 'too many concurrent SMTP connections', 'possible'],
  ]
  for (const [code, enhanced, text, load] of replies)
    assert.equal(loadOf({ code, enhanced, text }, 'rcpt'), load, text)
})

test('shaping: a 421 may concern its connection only, unless its words are about a rate', () => {
  const replies: [number, string, boolean][] = [
    [421, 'one is enough', true],
    [421, 'too many messages in this connection', true],
    [421, 'too many messages', false],
    [451, 'one is enough', false],
  ]
  for (const [code, text, may] of replies)
    assert.equal(mayEndConnectionOnly({ code, enhanced: null, text }, 'mail'), may, text)
})

test('shaping: a rule matches by code, status and words', () => {
  const none = { code: null, enhanced: null, text: null, pauseMs: 1_000 }
  const rules = {
    ...usualRules,
    replies: [
      { ...none, code: 421, enhanced: '4.7.*', pauseMs: 1 },
      { ...none, text: 'tss04', pauseMs: 2 },
    ],
  }
  const pauseOf = (code: number, enhanced: string | null, text: string) =>
    ruleFor(rules, { code, enhanced, text })?.pauseMs
  assert.equal(pauseOf(421, '4.7.0', 'busy'), 1)
  assert.equal(pauseOf(421, '4.3.2', 'busy'), undefined)
  assert.equal(pauseOf(451, null, 'deferred [TSS04]'), 2)
})

test('shaping: a source is blocked only by replies about its address', () => {
  const replies: [number, string | null, string, ReplyStage, boolean][] = [
    [
      554,
      '5.7.1',
      'Service unavailable; Client host [192.0.2.5] blocked using zen.spamhaus.org',
      'rcpt',
      true,
    ],
    [450, '4.7.1', 'Service unavailable; Client host [198.51.100.9] blocked using bl.example', 'rcpt', true],
    [
      550,
      '5.7.1',
      "Unfortunately, messages from [192.0.2.5] weren't sent: on our block list (S3140)",
      'mail',
      true,
    ],
    [554, null, 'Your IP has a poor reputation', 'connect', true],
    [554, '5.7.1', 'blocked', 'connect', true],
    [554, null, 'no SMTP service here', 'connect', false],
    [421, '4.7.0', 'too many connections', 'connect', false],
    [421, null, 'barracuda.far.test is busy, try again', 'connect', false],
    [421, '4.7.0', 'reputation service of 198.51.100.9 does not answer', 'connect', false],
    [421, '4.7.0', '[192.0.2.5] is listed on bl.example', 'connect', true],
    [450, '4.7.1', 'Your IP is blocked for now', 'connect', true],
    [550, '5.7.1', 'Sender address rejected: blocked using dbl.spamhaus.org', 'rcpt', false],
    [550, '5.1.1', 'no such user', 'rcpt', false],
    [550, '5.7.1', 'Message rejected as spam by content filtering', 'message', false],
    [550, '5.7.1', '[192.0.2.5] likely unsolicited mail', 'message', false],
    [451, '4.7.1', 'Greylisted, your host is blocked for five minutes', 'rcpt', false],
  ]
  for (const [code, enhanced, text, stage, isBlock] of replies)
    assert.equal(meansBlocked({ code, enhanced, text }, stage, '192.0.2.5'), isBlock, text)
})

test('shaping: a source has limits of its own at each provider', () => {
  const source = { address: '192.0.2.5', ehlo: 'mx.example', warmUp: null }
  const group = groupOf(builtInRules, 'requiretls:bulk:gmail.com', 'alt1.gmail-smtp-in.l.google.com', source)
  assert.deepEqual(
    [group.name, group.provider, group.rules.connections],
    ['google from 192.0.2.5', 'google', 20],
  )
})
