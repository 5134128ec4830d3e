// Eight mails of 24 MB at a time, with attachments and other parts: memory growth is bounded, and every byte is kept.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Message } from '../support/api.ts'
import { clamdMissing, makeClamd } from '../support/clamd.ts'
import { decodeBase64, sha256 } from '../support/decode-span.ts'
import { largeMail, measureLargeMail } from '../support/large-mail.ts'
import { createCaller, startPosthorn } from '../support/service.ts'

/** Holding each mail as a whole took 300 to 400 MB. A thread that begins to read takes 25 MB. */
const most = 256 << 20

const eight = [
  ...Array.from({ length: 5 }, () => 'one base64 attachment'),
  ...['one quoted-printable attachment', 'many small parts', 'many text parts'],
]

test('check 22: eight parallel mails with attachments of 24 MB take less than 256 MB, and read back unchanged', async (t) => {
  const clamd = clamdMissing ? null : makeClamd(t, { longest: '50M' })
  await clamd?.start()
  const posthorn = await startPosthorn(t, { env: clamd ? { POSTHORN_CLAMD: clamd.path } : {} })
  const { api } = await createCaller(posthorn)
  const mails = eight.map((shape, number) => ({ shape, raw: largeMail(shape, number) }))
  const { idleBytes, peakBytes, filedMs, plainMs, messageIds } = await measureLargeMail(posthorn, api, mails)
  const grown = peakBytes - idleBytes
  t.diagnostic(
    `idle ${idleBytes >> 20} MB, at most ${grown >> 20} MB more; filed in ${Math.round(filedMs)} ms`,
  )
  t.diagnostic(`a plain mail ${plainMs.alone.toFixed(1)} ms alone, ${plainMs.beside.toFixed(1)} ms beside`)
  assert.ok(grown < most, `${grown >> 20} MB more than idle`)
  for (const [index, { raw }] of mails.entries()) {
    if (eight[index] !== 'one base64 attachment') continue
    const { attachments } = await api.want<Message>(`/v1/messages/${messageIds[index]}`)
    const content = decodeBase64(raw.subarray(raw.lastIndexOf('\r\n\r\n') + 4, raw.lastIndexOf('\r\n--b--')))
    const [{ size, sha256: digest, scanState, id } = assert.fail('no attachment')] = attachments ?? []
    assert.deepEqual([size, digest], [content.length, sha256(content)])
    if (!clamd) continue
    assert.equal(scanState, 'clean')
    const downloaded = await api.bytes(`/v1/messages/${messageIds[index]}/attachments/${id}`)
    assert.ok(downloaded.equals(content))
  }
})
