// The parts of `ph` that read and write files of others: CSV of other services, mbox, text for terminals, completion.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Command } from '../../sdk/typescript/src/ph/command.ts'
import { complete } from '../../sdk/typescript/src/ph/completion.ts'
import { parseCsv, readAddresses, writeCell } from '../../sdk/typescript/src/ph/csv.ts'
import { mboxEntry } from '../../sdk/typescript/src/ph/export-command.ts'
import { inertJson, inertLine, table } from '../../sdk/typescript/src/ph/terminal.ts'

const files: [format: string, text: string, addresses: string[]][] = [
  [
    'Postmark',
    'EmailAddress,SuppressionReason,Origin,CreatedAt\nada@a.test,HardBounce,Recipient,2026-01-01\nben@b.test,SpamComplaint,Recipient,2026-01-02\n',
    ['ada@a.test', 'ben@b.test'],
  ],
  [
    'SendGrid',
    'status,reason,email,created\r\n5.1.1,"550 no such user, really",ada@a.test,1790000000\r\n',
    ['ada@a.test'],
  ],
  ['Mailgun', 'address,code,error,created_at\nada@a.test,550,"5.1.1\nno such user",2026\n', ['ada@a.test']],
  ['SES', 'EmailAddress,Reason,LastUpdateTime\nada@a.test,BOUNCE,2026-01-01T00:00:00Z\n', ['ada@a.test']],
  ['CSV', '\ufeffName;x,E-Mail\nAda,ada@a.test\nAda,ada@a.test\n,\n', ['ada@a.test']],
  ['CSV', 'ada@a.test\n\nBen,ben@b.test', ['ada@a.test', 'ben@b.test']],
]
for (const [format, text, addresses] of files)
  test(`ph: the addresses of a file in the format of ${format} are found: ${addresses}`, () => {
    assert.deepEqual(readAddresses(text), { format, addresses })
  })

test('ph: any table survives CSV, and any text is read', () => {
  const cell = fc.string({ unit: fc.constantFrom(...'a",\n\r;é ') })
  const row = fc.tuple(fc.constant('x'), cell, cell)
  fc.assert(
    fc.property(fc.array(row), (rows) => {
      const text = rows.map((cells) => cells.map(writeCell).join(',')).join('\r\n')
      // A line end at the beginning of a cell is marked, as formulas are.
      const marked = rows.map((cells) => cells.map((one) => (one.startsWith('\r') ? `'${one}` : one)))
      assert.deepEqual(parseCsv(text), marked)
    }),
  )
  fc.assert(fc.property(fc.string({ unit: fc.constantFrom(...'a",\n\r') }), (text) => void parseCsv(text)))
})

test('ph: a cell that begins like a formula is text', () => {
  assert.deepEqual(['=1+1', '@SUM(A1)', 'a@b.test'].map(writeCell), ["'=1+1", "'@SUM(A1)", 'a@b.test'])
})

test('ph: mbox separates messages, and marks lines that look like a separator', () => {
  const source = Buffer.from('Subject: Hi\r\n\r\nFrom here\r\n>From there\r\nend')
  const entry = mboxEntry(source, new Date('2026-11-05T09:08:07Z')).toString()
  assert.equal(
    entry,
    'From MAILER-DAEMON Thu Nov 05 09:08:07 2026\nSubject: Hi\n\n>From here\n>>From there\nend\n\n',
  )
})

test('ph: a terminal gets no control characters of strangers', () => {
  assert.equal(inertLine('a\x1b[2Jb\u202ec\nd'), 'a␛[2Jb\ufffdc d')
  assert.equal(inertJson({ a: '\x9b1m' }), '{"a":"\\u009b1m"}')
  assert.equal(
    table([
      ['a', 'bb'],
      ['ccc', 'd'],
    ]),
    'a    bb\nccc  d',
  )
})

test('ph: words and options are completed', () => {
  const commands = ['inbox', 'inbox create', 'send'].map(
    (words): Command => ({
      words,
      operands: '',
      summary: '',
      options: { name: { type: 'string', help: '' } },
      run: async () => {},
    }),
  )
  assert.deepEqual(complete(commands, ['']), ['inbox', 'send'])
  assert.deepEqual(complete(commands, ['inbox', 'c']), ['create'])
  assert.deepEqual(complete(commands, ['inbox', 'create', '--n']), ['--name'])
  assert.deepEqual(complete(commands, ['nothing', '']), [])
})
