// Runs smtp-sink, which comes with Postfix: a mail server without TLS that accepts everything and keeps it in files.
import { spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../support/free-port.ts'
import { sendMail } from '../support/smtp-sender.ts'
import { type Scope, until } from '../support/until.ts'

export interface SmtpSink {
  host: string
  port: number
  /** Each message it accepted, below its notes about the transaction (`X-Client-Proto`, `X-Rcpt-Args` and others). */
  dumps(): Buffer[]
  /** The messages as they were sent, with LF line ends. */
  kept(): Buffer[]
}

export const smtpSinkPath = '/usr/sbin/smtp-sink'

export async function startSmtpSink(
  scope: Scope,
  { host = '127.0.0.1', port: wanted }: { host?: string; port?: number } = {},
): Promise<SmtpSink> {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-smtp-sink-'))
  const port = wanted ?? (await freePort())
  const user = process.getuid?.() === 0 ? ['-u', 'root'] : []
  const words = [...user, '-d', 'mail.', `${host}:${port}`, '100']
  const child = spawn(smtpSinkPath, words, { cwd: folder, stdio: 'ignore' })
  scope.after(() => {
    child.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  })
  await until('smtp-sink to listen', async () => {
    const probe = { from: 'a@x.test', to: 'b@x.test', raw: Buffer.from('Subject: probe\r\n\r\n') }
    return (await sendMail({ host, port }, probe)).outcome === 'accepted'
  })
  const dumps = () =>
    readdirSync(folder)
      .map((name) => readFileSync(join(folder, name)))
      .filter((raw) => !raw.includes('Subject: probe'))
  return { host, port, dumps, kept: () => dumps().map(withoutDumpHeader) }
}

/** smtp-sink writes its own notes and a Received field above the message. */
function withoutDumpHeader(raw: Buffer): Buffer {
  return Buffer.from(
    raw.toString('latin1').replace(/^(X-[^\n]*\n|Received:[^\n]*\n([ \t][^\n]*\n)*)+/, ''),
    'latin1',
  )
}
