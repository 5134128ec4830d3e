// Plays chasquid's published SMTP dialogues (test/t-12-minor_dialogs) and its fuzz corpus to our server.
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import {
  dialogueNames,
  dialoguesFolder,
  fuzzInputNames,
  readDialogue,
  readFuzzInput,
  saidIn,
} from '../support/smtp-dialogues.ts'
import { until } from '../support/until.ts'
import { startMx } from '../wire/mx.ts'
import { Talk } from '../wire/talk.ts'

const absent = dialogueNames.length > 0 ? false : `${dialoguesFolder} is absent: set POSTHORN_TESTDATA`

const submission = 'AUTH over implicit TLS: an MX takes no submissions'
const notApplicable: Record<string, string> = {
  'auth_multi_dialog.cmy': submission,
  'auth_too_many_failures.cmy': submission,
}

/** Expected replies that we answer with another class, by dialogue, with the reason. */
const departures: Record<string, { want: string; ours: string; why: string }> = {
  'bad_data.cmy': {
    want: '554 5.6.0 Error parsing message',
    ours: '250',
    why: 'a malformed header is stored, filed as text and marked, not refused',
  },
}

test("chasquid's dialogues and corpus exist", {
  skip: absent && !process.env['CI'] ? absent : false,
}, () => {
  assert.ok(
    dialogueNames.length >= 17 && fuzzInputNames.length >= 11,
    `${dialoguesFolder} is absent or incomplete`,
  )
})

for (const name of dialogueNames) {
  test(`the server speaks chasquid's dialogue ${name}`, { skip: notApplicable[name] ?? false }, async (t) => {
    const mx = await startMx(t, { maxSizeBytes: 1 << 20, secureContext: () => null })
    mx.recorder.recipient = () => null
    const { sameCode, sameClass } = await speak(t, mx.port, name)
    t.diagnostic(`replies with the same code: ${sameCode}; with the same class only: ${sameClass}`)
    if (departures[name]) t.diagnostic(`departs from ${departures[name].want}: ${departures[name].why}`)
    const verify = join(dialoguesFolder, `${name}.verify`)
    if (!existsSync(verify)) return
    const want = readFileSync(verify, 'latin1').replaceAll('\n', '\r\n')
    assert.equal(mx.recorder.got[0]!.content.toString('latin1').trimEnd(), want.trimEnd())
  })
}

/** Plays a dialogue. `->` sends a line, `~>` sends a Python expression's bytes, and `<-`, `<~`, `<...` expect replies. */
async function speak(t: TestContext, port: number, name: string) {
  const agreement = { sameCode: 0, sameClass: 0 }
  let talk: Talk | undefined
  for (const row of readDialogue(name)) {
    const { sign, rest } = row
    const said = saidIn(row)
    if (sign === 'tcp_connect') talk = await Talk.connect(t, port)
    else if (sign === 'close') talk?.destroy()
    else if (said !== null) talk?.write(said)
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

for (const name of fuzzInputNames) {
  test(`the server survives chasquid's fuzz input ${name.slice(0, 12)}, unchanged and with CRLF`, async (t) => {
    const mx = await startMx(t)
    mx.recorder.recipient = () => null
    const input = readFuzzInput(name)
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
