// Tests replies and their meaning as a table: permanent or temporary, the kind, and whether the address is dead.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inCpuTime } from '../../../tests/support/cpu-time.ts'
import { type Classification, classify, type ReplyStage } from './reply-code.ts'

type Row = [reply: string, stage: ReplyStage, classification: Classification, dead: 'dead' | 'alive']

const rows: Row[] = [
  ['550 5.1.1 no such user', 'rcpt', 'hard_bounce', 'dead'],
  ['550 5.1.1 whatever it says', 'message', 'hard_bounce', 'dead'],
  ['550 5.1.2 bad host', 'rcpt', 'hard_bounce', 'dead'],
  ['553 5.1.3 bad syntax', 'rcpt', 'hard_bounce', 'dead'],
  ['550 5.1.6 moved', 'rcpt', 'hard_bounce', 'dead'],
  ['556 5.1.10 null MX', 'rcpt', 'hard_bounce', 'dead'],
  ['550 5.1.1 the sender is nobody', 'mail', 'hard_bounce', 'alive'],
  ['550 5.1.0 address rejected', 'rcpt', 'hard_bounce', 'alive'],
  ['550 5.1.8 sender domain', 'mail', 'policy', 'alive'],
  ['450 4.1.1 unverified address', 'rcpt', 'other', 'alive'],
  ['550 User unknown', 'rcpt', 'hard_bounce', 'dead'],
  ['550 No such user here', 'rcpt', 'hard_bounce', 'dead'],
  ['550 Requested action not taken: mailbox unavailable', 'rcpt', 'hard_bounce', 'alive'],
  ["554 delivery error: This user doesn't have a yahoo.com account", 'rcpt', 'hard_bounce', 'dead'],
  ['550 5.0.0 <a@b>: Recipient address rejected: user unknown', 'rcpt', 'hard_bounce', 'dead'],
  ['550 User unknown', 'message', 'hard_bounce', 'alive'],
  ['450 User unknown', 'rcpt', 'other', 'alive'],
  ['550 5.7.1 Recipient address rejected: User unknown', 'rcpt', 'hard_bounce', 'alive'],
  ['550 5.2.1 User unknown', 'rcpt', 'hard_bounce', 'alive'],
  ['550 5.4.1 Recipient address rejected: user unknown', 'rcpt', 'hard_bounce', 'alive'],
  ['550 User unknown, says the mail server from far.test', 'rcpt', 'hard_bounce', 'dead'],
  ['550 mail from <a@us.test>: user unknown', 'rcpt', 'hard_bounce', 'alive'],
  ['550 User Ada not listed in Domino Directory', 'rcpt', 'hard_bounce', 'dead'],
  ['550 192.0.2.1 is listed in a directory of senders', 'rcpt', 'spam', 'alive'],
  ['550 Messaging Security Suite: no', 'rcpt', 'hard_bounce', 'alive'],
  ['550 refused for security reasons', 'rcpt', 'policy', 'alive'],
  ['550 your IP address 192.0.2.1 was not found in the DNS', 'rcpt', 'hard_bounce', 'alive'],
  ['550 reverse address invalid', 'rcpt', 'hard_bounce', 'alive'],
  ['550 sender address unknown user', 'rcpt', 'policy', 'alive'],
  ['552 5.2.2 mailbox full', 'rcpt', 'mailbox_full', 'alive'],
  ['452 4.2.2 over quota', 'rcpt', 'mailbox_full', 'alive'],
  ['552 Quota exceeded', 'rcpt', 'mailbox_full', 'alive'],
  ['552 too big', 'message', 'policy', 'alive'],
  ['552 5.3.4 message too big', 'mail', 'policy', 'alive'],
  ['550 5.7.1 blocked using zen.spamhaus.org', 'rcpt', 'spam', 'alive'],
  ['550 5.7.1 Blocked by policy', 'message', 'policy', 'alive'],
  ['550 5.7.1 blocked due to our content policies', 'message', 'policy', 'alive'],
  ['550 5.7.1 blocked by our policy on spam', 'message', 'spam', 'alive'],
  ['554 5.7.1 spam message rejected', 'message', 'spam', 'alive'],
  ['550 5.7.26 this mail has been blocked: DMARC', 'message', 'policy', 'alive'],
  ['550 5.7.1 relaying denied', 'rcpt', 'policy', 'alive'],
  ['550 5.7.0 local policy violation', 'message', 'policy', 'alive'],
  ['450 4.7.1 Greylisted, try again in 5 minutes', 'rcpt', 'greylisted', 'alive'],
  ['451 4.7.1 Gray-listed', 'rcpt', 'greylisted', 'alive'],
  ['421 4.7.28 unusual rate of mail', 'message', 'rate_limited', 'alive'],
  ['452 4.5.3 too many recipients', 'rcpt', 'rate_limited', 'alive'],
  ['421 too many connections', 'connect', 'rate_limited', 'alive'],
  ['530 5.7.0 Must issue a STARTTLS command first', 'mail', 'tls', 'alive'],
  ['451 4.4.3 lookup failed', 'rcpt', 'dns', 'alive'],
  ['550 5.4.7 gave up', 'message', 'expired', 'alive'],
  ['500 what', 'mail', 'protocol', 'alive'],
  ['550 5.5.2 syntax', 'mail', 'protocol', 'alive'],
  ['421 closing', 'rcpt', 'network', 'alive'],
  ['451 local error', 'message', 'other', 'alive'],
  ['554 no', 'connect', 'policy', 'alive'],
  ['554 transaction failed', 'message', 'other', 'alive'],
]

function parse(line: string) {
  const [, code, enhanced, text] = /^(\d{3}) (?:(\d\.\d+\.\d+) )?(.*)$/.exec(line)!
  return { code: Number(code), enhanced: enhanced ?? null, text: text! }
}

for (const [line, stage, classification, dead] of rows) {
  test(`check 47: a reply is classified: ${line} (${stage})`, () => {
    const meaning = classify(parse(line), stage)
    assert.equal(meaning.classification, classification)
    assert.equal(meaning.suppresses, dead === 'dead')
    assert.equal(meaning.isPermanent, line.startsWith('5'))
  })
}

test('the failure code says whether the address or the message was refused', () => {
  assert.equal(classify(parse('550 5.1.1 no'), 'rcpt').failureCode, 'hard_bounce')
  assert.equal(classify(parse('550 5.7.1 no'), 'rcpt').failureCode, 'policy_rejected')
  assert.equal(classify(parse('550 5.7.1 spam'), 'message').failureCode, 'policy_rejected')
  assert.equal(classify(parse('450 4.7.1 later'), 'rcpt').failureCode, 'soft_bounce_expired')
})

test('check 60: hostile texts are read in linear time', () => {
  for (const unit of [
    'user ',
    'mailbox is ',
    'exceed ',
    'sender ',
    'adresse ',
    'tls ',
    'address a',
    "doesn't have a ",
  ]) {
    const text = unit.repeat(1000).slice(0, 1000)
    inCpuTime(20, () => classify({ code: 550, enhanced: null, text }, 'rcpt'), unit)
  }
})
