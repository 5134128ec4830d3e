// chasquid's published SMTP dialogues (test/t-12-minor_dialogs) and its fuzz corpus, spoken to our server.
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { type TestContext, test } from 'node:test'
import { until } from '../support/until.ts'
import { startMx } from '../wire/mx.ts'
import { Talk } from '../wire/talk.ts'

const testdata = resolve(
  import.meta.dirname,
  '../..',
  process.env['POSTHORN_TESTDATA'] ?? '../shared/testdata',
)
const folder = join(testdata, 'smtp-dialogues-chasquid')
const present = existsSync(folder)
const absent = present ? false : `${folder} is absent: set POSTHORN_TESTDATA`

const submission = 'AUTH over implicit TLS: an MX takes no submissions'
const notApplicable: Record<string, string> = {
  'auth_multi_dialog.cmy': submission,
  'auth_too_many_failures.cmy': submission,
}

/** Wanted replies that we answer with another class, by dialogue, and why. */
const departures: Record<string, { want: string; ours: string; why: string }> = {
  'bad_data.cmy': {
    want: '554 5.6.0 Error parsing message',
    ours: '250',
    why: 'a malformed header is stored, filed as text and marked, not refused',
  },
}

const dialogues = present ? readdirSync(folder).filter((name) => name.endsWith('.cmy')) : []
const corpus = present ? readdirSync(join(folder, 'fuzz/FuzzConnection')) : []

test("chasquid's dialogues and corpus are there", {
  skip: absent && !process.env['CI'] ? absent : false,
}, () => {
  assert.ok(dialogues.length >= 17 && corpus.length >= 11, `${folder} is absent or incomplete`)
})

for (const name of dialogues) {
  test(`chasquid's dialogue ${name}`, { skip: notApplicable[name] ?? false }, async (t) => {
    const mx = await startMx(t, { maxSizeBytes: 1 << 20, secureContext: () => null })
    mx.recorder.recipient = () => null
    const { sameCode, sameClass } = await speak(t, mx.port, name)
    t.diagnostic(`replies with the same code: ${sameCode}; with the same class only: ${sameClass}`)
    if (departures[name]) t.diagnostic(`departs from ${departures[name].want}: ${departures[name].why}`)
    const verify = join(folder, `${name}.verify`)
    if (!existsSync(verify)) return
    const want = readFileSync(verify, 'latin1').replaceAll('\n', '\r\n')
    assert.equal(mx.recorder.got[0]!.content.toString('latin1').trimEnd(), want.trimEnd())
  })
}

/** Speaks a dialogue: `->` a line, `~>` a Python expression's bytes, `<-`, `<~`, `<...` replies. */
async function speak(t: TestContext, port: number, name: string) {
  const agreement = { sameCode: 0, sameClass: 0 }
  let talk: Talk | undefined
  for (const row of readFileSync(join(folder, name), 'utf8').split('\n')) {
    const [, sign = '', rest = ''] = /^c (\S+) ?(.*)$/.exec(row) ?? []
    if (sign === 'tcp_connect') talk = await Talk.connect(t, port)
    else if (sign === 'close') talk?.destroy()
    else if (sign === '->') talk?.write(`${rest}\r\n`)
    else if (sign === '~>') talk?.write(Buffer.from(evaluate(rest), 'latin1'))
    else if (sign.startsWith('<')) {
      const heard = (await talk!.reply()) ?? 'closed'
      const departure = departures[name]?.want === rest ? departures[name] : null
      assert.equal(heard[0], (departure?.ours ?? rest)[0], `${heard} instead of ${rest}`)
      if (heard.slice(0, 3) === rest.slice(0, 3)) agreement.sameCode++
      else if (!departure) agreement.sameClass++
    }
  }
  talk?.destroy()
  return agreement
}

/** The few Python expressions that the dialogues use: strings joined by `+`, repeated by `*`, one pair of brackets. */
function evaluate(expression: string): string {
  const repeated = /^\((.*)\) \* (\d+)$/.exec(expression)
  if (repeated) return evaluate(repeated[1]!).repeat(Number(repeated[2]))
  return expression
    .split(' + ')
    .map((term) => {
      const [, text, count] = /^'(.*)'(?: \* (\d+))?$/.exec(term) ?? assert.fail(`cannot evaluate ${term}`)
      return (JSON.parse(`"${text}"`) as string).repeat(Number(count ?? 1))
    })
    .join('')
}

for (const name of corpus) {
  test(`chasquid's fuzz input ${name.slice(0, 12)}, as it lies and with CRLF`, async (t) => {
    const mx = await startMx(t)
    mx.recorder.recipient = () => null
    const [, literal = '""'] =
      /\[\]byte\((".*")\)/.exec(readFileSync(join(folder, 'fuzz/FuzzConnection', name), 'utf8')) ?? []
    const input = JSON.parse(literal) as string
    for (const text of [input, input.replaceAll('\n', '\r\n')]) {
      const talk = await Talk.connect(t, mx.port)
      assert.match((await talk.reply())!, /^220/)
      for (const line of text.split(/(?<=\n)/)) {
        talk.write(line)
        for (let turn = 0; turn < 4; turn++) await new Promise((resolve) => setImmediate(resolve))
      }
      talk.end()
      for (let line = await talk.line(); line !== null; line = await talk.line()) {
        assert.match(line, /^[2-5]\d\d[ -][\x20-\x7e]*$/)
      }
    }
    await until('the end of every session', () => mx.server.sessions === 0)
    assert.deepEqual(mx.errors, [])
  })
}
