// Large mail against a service in its own process: memory growth, the delay of other mail, and whether bytes differ.
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import pg from 'pg'
import type { Api } from './api.ts'
import { idIn, PlainSender, untilFiled } from './plain-mail.ts'
import type { Posthorn } from './service.ts'
import { until } from './until.ts'
import { Wire } from './wire.ts'

/** Below the size limit of 25 MiB. */
const largeBytes = 24 << 20
const pieceBytes = 64 * 1024

const base64Line = `${Buffer.from('The quick brown fox jumps over the lazy dog, and on it goes.').toString('base64').slice(0, 76)}\r\n`
const part = (type: string, rest = '') => `--b\r\nContent-Type: ${type}\r\n${rest}\r\n`
const encoded = (encoding: string) =>
  `Content-Transfer-Encoding: ${encoding}\r\nContent-Disposition: attachment; filename="a.bin"\r\n`
const mixed = 'Content-Type: multipart/mixed; boundary=b\r\n\r\n'
const text = `${part('text/plain')}See the file.\r\n`

/** The beginning of a mail, the part that is repeated until it is large, and its end. */
const shapes: Record<string, [begin: string, repeated: string, end: string]> = {
  'one base64 attachment': [`${mixed}${text}${part('a/b', encoded('base64'))}`, base64Line, '--b--\r\n'],
  'one quoted-printable attachment': [
    `${mixed}${text}${part('a/b', encoded('quoted-printable'))}`,
    `${'=E4=F6=FC '.repeat(7)}=\r\n`,
    '\r\n--b--\r\n',
  ],
  'many small parts': [mixed, `${part('a/b', encoded('base64'))}${base64Line.repeat(28)}\r\n`, '--b--\r\n'],
  'many text parts': [mixed, `${part('text/plain')}${'Hello, and good day.\r\n'.repeat(100)}`, '--b--\r\n'],
  'one text/plain': ['Content-Type: text/plain\r\n\r\n', 'On and on it goes, line by line by line.\r\n', ''],
  'one text/plain in base64': [
    'Content-Type: text/plain\r\nContent-Transfer-Encoding: base64\r\n\r\n',
    base64Line,
    '',
  ],
  'one text/html': [
    'Content-Type: text/html; charset=utf-8\r\n\r\n',
    '<p>On <a href="https://a.example/b">and</a> on &amp; on, ä ö ü.</p>\r\n',
    '',
  ],
  'one line': ['Content-Type: text/plain\r\n\r\n', 'x', '\r\n'],
  'lines that are nearly boundaries': [`${mixed.replace('=b', '=bb')}`, '--bx\r\n', '--bb--\r\n'],
}

/** A large mail of the shape. `number` distinguishes mails of one shape; an attachment has the announced length. */
export function largeMail(shape: string, number: number): Buffer {
  const [begin, repeated, end] = shapes[shape]!
  const head = `From: a@far.test\r\nSubject: ${shape}, ${number}\r\nX-Number: ${number}\r\n${begin}`
  const times = Math.floor((largeBytes - head.length - end.length) / repeated.length)
  const mail = Buffer.alloc(head.length + times * repeated.length + end.length)
  mail.write(head, 'latin1')
  mail.fill(repeated, head.length, mail.length - end.length, 'utf8')
  mail.write(end, mail.length - end.length, 'latin1')
  return mail
}

export interface LargeMailFigures {
  shapes: string[]
  /** Memory of the service's process, from `/proc`, after 40 plain mails. PostgreSQL has processes of its own. */
  idleBytes: number
  /** The peak between the first byte of a mail and the last byte of its source that was read back. */
  peakBytes: number
  /** From the first mail sent until all are filed. */
  filedMs: number
  /** Medians from the connection to the commit of the message, over all plain mails sent in the time. */
  plainMs: { alone: number; beside: number; count: number }
}

/**
 * Sends the mails at once, waits for their scans if a scanner is set, and reads them back at once. Throws if a byte differs.
 * Plain mail is sent and timed before and meanwhile.
 */
export async function measureLargeMail(
  posthorn: Posthorn,
  api: Api,
  mails: { shape: string; raw: Buffer }[],
): Promise<LargeMailFigures & { messageIds: string[] }> {
  const inbox = await api.createInbox()
  const other = await api.createInbox()
  const client = new pg.Client(posthorn.database())
  await client.connect()
  const plain = new PlainSender({
    smtp: posthorn.smtp,
    database: posthorn.database(),
    address: other.address,
  })
  try {
    const alone = await plain.take(40)
    const idleBytes = memoryOf(posthorn.pid, 'VmRSS')
    writeFileSync(`/proc/${posthorn.pid}/clear_refs`, '5')
    const startMs = performance.now()
    const messageIds = await Promise.all(mails.map(({ raw }) => sendLarge(posthorn, inbox.address, raw)))
    for (const id of messageIds) await untilFiled(client, id)
    const filedMs = performance.now() - startMs
    const beside = await plain.take(1)
    if (posthorn.env['POSTHORN_CLAMD'])
      await until('all to be scanned', async () => (await scansLeft(client)) === 0, { timeoutMs: 300_000 })
    await Promise.all(mails.map(({ raw }, index) => compareSource(posthorn, api, messageIds[index]!, raw)))
    const peakBytes = memoryOf(posthorn.pid, 'VmHWM')
    const plainMs = { alone: median(alone), beside: median(beside), count: beside.length }
    return { shapes: mails.map(({ shape }) => shape), idleBytes, peakBytes, filedMs, plainMs, messageIds }
  } finally {
    await plain.end()
    await client.end()
  }
}

function memoryOf(pid: number, name: 'VmRSS' | 'VmHWM'): number {
  const [, kilobytes] = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(
    readFileSync(`/proc/${pid}/status`, 'utf8'),
  )!
  return Number(kilobytes) * 1024
}

/** Counts messages whose attachments still wait for a scan. */
async function scansLeft(client: pg.Client): Promise<number> {
  const { rows } = await client.query('select count(*)::integer as count from scan')
  return rows[0].count
}

/** `raw` has no line that begins with a dot. Returns the id of the message. */
async function sendLarge({ smtp }: Posthorn, to: string, raw: Buffer): Promise<string> {
  const socket = connect({ ...smtp, noDelay: true })
  const wire = new Wire(socket)
  const words = ['EHLO sender.test', 'MAIL FROM:<a@far.test>', `RCPT TO:<${to}>`, 'DATA']
  try {
    await wire.reply()
    for (const word of words) {
      await wire.write(`${word}\r\n`)
      const reply = await wire.reply()
      if (!/^[23]/.test(reply ?? '')) throw new Error(`${word}: ${reply}`)
    }
    for (let at = 0; at < raw.length; at += pieceBytes) await wire.write(raw.subarray(at, at + pieceBytes))
    await wire.write('.\r\n')
    const reply = await wire.reply()
    if (!reply?.startsWith('250')) throw new Error(`a large mail was not taken: ${reply}`)
    return idIn(reply)
  } finally {
    socket.destroy()
  }
}

/** Below the trace fields, the source equals the sent mail. */
async function compareSource(posthorn: Posthorn, api: Api, id: string, raw: Buffer): Promise<void> {
  const digest = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
  const source = await api.bytes(`/v1/messages/${id}/source`)
  if (digest(source.subarray(source.length - raw.length)) !== digest(raw))
    throw new Error(`the source of ${id} is not what was sent: ${posthorn.log()}`)
}

function median(times: number[]): number {
  return times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)]!
}
