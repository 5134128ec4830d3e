// Tests the other mail servers without Posthorn: each accepts mail, keeps its own and relays the rest, dots included.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { startSink } from '../support/sink.ts'
import { sendMail } from '../support/smtp-sender.ts'
import { type Scope, until } from '../support/until.ts'
import { findExim, startExim } from './exim.ts'
import type { Neighbour } from './neighbour.ts'
import { postfixMissing, startPostfix } from './postfix.ts'

type Start = (scope: Scope, relay: { host: string; port: number }) => Promise<Neighbour>

const exim = findExim()
const neighbours: [name: string, missing: string | null, start: Start][] = [
  ['postfix', postfixMissing(), startPostfix],
  [
    'exim',
    'missing' in exim ? exim.missing : null,
    (scope, relay) => startExim(scope, 'folder' in exim ? exim.folder : '', relay),
  ],
]

for (const [name, missing, start] of neighbours)
  test(`${name} keeps its own mail and relays the rest`, { skip: missing ?? false }, async (t) => {
    const sink = await startSink(t)
    const neighbour = await start(t, sink)
    for (const to of [`box@${name}.test`, 'far@elsewhere.test']) {
      const raw = Buffer.from(
        `From: a@x.test\r\nTo: ${to}\r\nMessage-ID: <1@x.test>\r\n\r\n.dot\r\n..\r\nend\r\n`,
      )
      const sent = await sendMail(neighbour, { from: 'a@x.test', to, raw })
      assert.equal(sent.outcome, 'accepted', sent.reply)
    }
    await until(`${name} to do both`, () => sink.copies.length === 1 && neighbour.kept().length === 1).catch(
      (error) => {
        throw new Error(`${error.message}\n${readFileSync(neighbour.logFile, 'utf8')}`)
      },
    )
    assert.match(sink.copies[0]!.raw.toString(), /\r\n\r\n\.dot\r\n\.\.\r\nend\r\n$/)
    assert.match(neighbour.kept()[0]!.toString(), /\n\n\.dot\n\.\.\nend\n$/)
  })
