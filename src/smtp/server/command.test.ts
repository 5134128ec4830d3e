// Tests of command.ts.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseCommand } from './command.ts'

const from = {
  localPart: 'a',
  domain: 'x.test',
  address: 'a@x.test',
  sizeBytes: null,
  body: null,
  needsUtf8: false,
}
const nullFrom = { ...from, localPart: '', domain: '', address: '' }
const to = { localPart: 'u', domain: 'our.test', address: 'u@our.test' }

const good: [string, object][] = [
  ['ehlo client.test', { verb: 'EHLO', name: 'client.test' }],
  ['HELO  [192.0.2.1] ', { verb: 'HELO', name: '[192.0.2.1]' }],
  [`HELO ${'x'.repeat(400)}`, { verb: 'HELO', name: 'x'.repeat(255) }],
  ['MAIL FROM:<a@x.test>', { verb: 'MAIL', from }],
  ['mail from: <a@x.test> ', { verb: 'MAIL', from }],
  ['MAIL FROM:a@x.test', { verb: 'MAIL', from }],
  ['MAIL FROM:<>', { verb: 'MAIL', from: nullFrom }],
  ['MAIL FROM:<> size=12  body=7bit', { verb: 'MAIL', from: { ...nullFrom, sizeBytes: 12, body: '7BIT' } }],
  ['MAIL FROM:<a@x.test> SIZE=1 size=1', { verb: 'MAIL', from: { ...from, sizeBytes: 1 } }],
  [
    'MAIL FROM:<a@x.test> BODY=7BIT SMTPUTF8 body=7bit',
    { verb: 'MAIL', from: { ...from, body: '7BIT', needsUtf8: true } },
  ],
  ['MAIL FROM:<a@x.test> SMTPUTF8', { verb: 'MAIL', from: { ...from, needsUtf8: true } }],
  ['MAIL FROM:<a@x.test> requiretls', { verb: 'MAIL', from: { ...from, requiresTls: true } }],
  ['RCPT TO:<u@our.test>', { verb: 'RCPT', to, isWide: false }],
  [
    'RCPT TO:<ü@our.test>',
    { verb: 'RCPT', to: { ...to, localPart: 'ü', address: 'ü@our.test' }, isWide: true },
  ],
  [
    'RCPT TO:<PostMaster>',
    {
      verb: 'RCPT',
      to: { localPart: 'postmaster', domain: 'mx.test', address: 'postmaster@mx.test' },
      isWide: false,
    },
  ],
  ['DATA', { verb: 'DATA' }],
  ['data ', { verb: 'DATA' }],
  ['NOOP x', { verb: 'NOOP' }],
  ['auth plain', { verb: 'AUTH', mechanism: 'PLAIN', initial: null }],
  ['AUTH LOGIN YQ==', { verb: 'AUTH', mechanism: 'LOGIN', initial: 'YQ==' }],
  ['BDAT 12', { verb: 'BDAT', sizeBytes: 12, isLast: false }],
  ['bdat 0  last', { verb: 'BDAT', sizeBytes: 0, isLast: true }],
]
for (const [line, want] of good) {
  test(line.slice(0, 60), () => assert.deepEqual(parseCommand(Buffer.from(`${line}\r`), 'mx.test'), want))
}

const bad: [string | Buffer, number, string][] = [
  ['\r', 500, '5.5.1'],
  ['WHAT\r', 500, '5.5.1'],
  ['AUTH\r', 501, '5.5.4'],
  ['AUTH PLAIN *\r', 501, '5.5.4'],
  ['EHLO\r', 501, '5.5.4'],
  ['EHLO \r', 501, '5.5.4'],
  ['NOOP', 500, '5.5.2'],
  ['NO\rOP\r', 500, '5.5.2'],
  ['NOOP\t\r', 500, '5.5.2'],
  ['NOOP \0\r', 500, '5.5.2'],
  ['NOOP \u0085\r', 500, '5.5.2'],
  [Buffer.from([0x4e, 0xff, 0x0d]), 500, '5.5.2'],
  ['DATA x\r', 501, '5.5.4'],
  ['STARTTLS x\r', 501, '5.5.4'],
  ['MAIL\r', 501, '5.5.4'],
  ['MAIL LALA:<>\r', 501, '5.5.4'],
  ['MAIL FROM:\r', 501, '5.5.4'],
  ['MAIL FROM:<a@x.test>x\r', 501, '5.5.4'],
  ['MAIL FROM:<a\r', 501, '5.5.4'],
  ['MAIL FROM:<a>\r', 501, '5.1.7'],
  ['MAIL FROM:<a@x.test> SIZE=-1\r', 501, '5.5.4'],
  ['MAIL FROM:<a@x.test> SIZE\r', 501, '5.5.4'],
  [`MAIL FROM:<a@x.test> SIZE=${'9'.repeat(21)}\r`, 501, '5.5.4'],
  ['MAIL FROM:<a@x.test> BODY=9BIT\r', 501, '5.5.4'],
  ['MAIL FROM:<a@x.test> SMTPUTF8=1\r', 501, '5.5.4'],
  ['MAIL FROM:<a@x.test> REQUIRETLS=1\r', 501, '5.5.4'],
  ['MAIL FROM:<a@x.test> SIZE=1 size=2\r', 501, '5.5.4'],
  ['MAIL FROM:<a@x.test> ENVID=a+0D+0A\r', 555, '5.5.4'],
  ['MAIL FROM:<ü@x.test>\r', 553, '5.6.7'],
  ['MAIL FROM:<a@ü.test>\r', 553, '5.6.7'],
  ['RCPT TO:<>\r', 501, '5.1.3'],
  ['RCPT TO:<u@our.test> X\r', 555, '5.5.4'],
  ['BDAT\r', 501, '5.5.4'],
  ['BDAT -1\r', 501, '5.5.4'],
  ['BDAT 1 LAST x\r', 501, '5.5.4'],
  ['BDAT 9999999999999999\r', 501, '5.5.4'],
]
for (const [line, code, enhanced] of bad) {
  test(`check 27: ${JSON.stringify(line.toString())} is ${code} ${enhanced}`, () => {
    const command = parseCommand(Buffer.from(line), 'mx.test')
    assert.equal(command.verb, 'BAD')
    assert.deepEqual(command.verb === 'BAD' && [command.reply.code, command.reply.enhanced], [code, enhanced])
  })
}
