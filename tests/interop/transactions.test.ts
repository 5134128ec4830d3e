// Tests the SMTP client's pipelined transactions against the other mail servers.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { connect } from '../../src/smtp/client/client.ts'
import { type Scope, until } from '../support/until.ts'
import { findExim, startExim } from './exim.ts'
import type { Neighbour } from './neighbour.ts'
import { postfixMissing, startPostfix } from './postfix.ts'

/** Sends one message to each recipient in a separate transaction, over one connection. Returns the outcomes. */
async function sendToEach(neighbour: Neighbour, to: string[]): Promise<string[]> {
  const { host, port } = neighbour
  const opened = await connect({ host, address: host, port, ehloName: 'me.test', tls: 'none' })
  assert.ok('connection' in opened, JSON.stringify(opened))
  assert.ok(opened.connection.extensions.has('PIPELINING'))
  const envelopes = to.map((address, i) => ({ from: `bounce-${i}@x.test`, to: address, needsUtf8: false }))
  const raw = Buffer.from('From: a@x.test\r\nMessage-ID: <2@x.test>\r\n\r\n.dot\r\nend\r\n')
  const { recipients, fault } = await opened.connection.send(envelopes, raw)
  await opened.connection.quit()
  assert.equal(fault, null)
  return recipients.map(({ outcome }) => outcome)
}

const exim = findExim()
const nowhere = { host: '127.0.0.1', port: 9 }
const neighbours: [name: string, missing: string | null, start: (scope: Scope) => Promise<Neighbour>][] = [
  ['postfix', postfixMissing(), (scope) => startPostfix(scope, nowhere)],
  [
    'exim',
    'missing' in exim ? exim.missing : null,
    (scope) => startExim(scope, 'folder' in exim ? exim.folder : '', nowhere),
  ],
]

for (const [name, missing, start] of neighbours)
  test(`${name} accepts transactions that begin right after the previous message`, {
    skip: missing ?? false,
  }, async (t) => {
    const neighbour = await start(t)
    const outcomes = await sendToEach(neighbour, Array<string>(8).fill(`box@${name}.test`))
    assert.deepEqual(outcomes, Array(8).fill('delivered'))
    await until('all to be kept', () => neighbour.kept().length === 8)
  })

for (const keywords of ['', 'chunking'])
  test(`postfix with${keywords && 'out'} CHUNKING refuses some of several transactions, and accepts the others`, {
    skip: postfixMissing() ?? false,
  }, async (t) => {
    const settings = `
smtpd_discard_ehlo_keywords = ${keywords}
smtpd_recipient_restrictions = check_recipient_access inline:{no@postfix.test=REJECT}, permit
`
    const neighbour = await startPostfix(t, nowhere, { settings })
    const outcomes = await sendToEach(
      neighbour,
      ['a', 'no', 'b', 'no', 'no', 'c'].map((name) => `${name}@postfix.test`),
    )
    const [yes, no] = ['delivered', 'refused']
    assert.deepEqual(outcomes, [yes, no, yes, no, no, yes])
    await until('three to be kept', () => neighbour.kept().length === 3)
  })
