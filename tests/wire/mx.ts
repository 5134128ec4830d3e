// The real SMTP server with a recorder that keeps every message, queried recipient and abort for the test.
import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import { pino } from 'pino'
import { Clock } from '../../src/base/clock.ts'
import type { Reply } from '../../src/smtp/reply.ts'
import type { Backend, Envelope, Path } from '../../src/smtp/server/backend.ts'
import { SmtpServer } from '../../src/smtp/server/server.ts'
import type { SmtpServerOptions } from '../../src/smtp/server/server-options.ts'
import type { Scope } from '../support/until.ts'

export class Recorder implements Backend {
  readonly got: { envelope: Envelope; content: Buffer }[] = []
  readonly asked: Path[] = []
  begun = 0
  aborted = 0

  recipient(_envelope: Envelope, to: Path): Reply | null {
    this.asked.push(to)
    if (to.domain !== 'our.test') return { code: 550, enhanced: '5.7.1', text: 'Relaying denied' }
    return to.localPart.startsWith('unknown')
      ? { code: 550, enhanced: '5.1.1', text: 'No such mailbox' }
      : null
  }

  message(envelope: Envelope) {
    this.begun++
    const chunks: Buffer[] = []
    return {
      // Copy the chunk, so that the test notices if the server changes it later.
      write: (chunk: Buffer): void | Promise<void> => void chunks.push(Buffer.from(chunk)),
      end: async (): Promise<Reply> => {
        this.got.push({ envelope: structuredClone(envelope), content: Buffer.concat(chunks) })
        return { code: 250, enhanced: '2.0.0', text: 'Accepted' }
      },
      abort: () => void this.aborted++,
    }
  }
}

export interface Mx {
  port: number
  clock: Clock
  recorder: Recorder
  server: SmtpServer
  /** Lines logged at level error or above. */
  errors: string[]
}

const fixture = (name: string) => readFileSync(new URL(`../fixtures/${name}`, import.meta.url))
const context = createSecureContext({ key: fixture('tls-key.pem'), cert: fixture('tls-cert.pem') })

/** Starts a server on a free port, for domain `our.test`. It stops when the test ends. */
export async function startMx(t: Scope, overrides: Partial<SmtpServerOptions> = {}): Promise<Mx> {
  const clock = new Clock()
  const recorder = new Recorder()
  const errors: string[] = []
  const server = new SmtpServer({
    hostname: 'mx.test',
    listen: { host: '127.0.0.1', port: 0 },
    maxSizeBytes: 100_000,
    maxRecipients: 3,
    secureContext: () => context,
    isTrusted: () => false,
    clock,
    log: pino({ level: 'error' }, { write: (line: string) => void errors.push(line) }),
    backend: recorder,
    ...overrides,
    limits: { sweepIntervalMs: 10, ...overrides.limits },
  })
  const { port } = await server.listen()
  t.after(() => server.close(0))
  return { port, clock, recorder, server, errors }
}
