// HTTP load: the input of the program that sends requests, and the bodies of the requests.
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { limitOf, runChild } from '../children.ts'
import { type MailShape, writeContent } from './mail-content.ts'
import { poolSizeOf, type SavedPool, savePool } from './pool.ts'
import { randomOf, writeParagraphs } from './prose.ts'
import type { Latency, Schedule } from './schedule.ts'

export interface HttpLoad extends Schedule {
  url: string
  method: 'GET' | 'POST'
  /** Paths, used round robin. */
  paths: readonly string[]
  headers: Record<string, string>
  /** JSON bodies, used round robin. Each POST has a new idempotency key, or one of `keys` with its own body. */
  bodies?: SavedPool
  keys?: { prefix: string; count: number }
  connections: number
  expectStatus: string
}

export interface HttpResult {
  /** First request and last answer, milliseconds since the epoch. */
  startedAtMs: number
  endedAtMs: number
  answered: number
  refused: number
  firstRefusal: string
  latencyMs: Latency
}

const client = fileURLToPath(new URL('http-client.ts', import.meta.url))

/** Runs the load in a separate program. Throws if any answer has an unexpected status. */
export async function sendByHttp(load: HttpLoad): Promise<HttpResult> {
  const output = await runChild(process.execPath, [client], {
    input: JSON.stringify(load),
    timeoutMs: limitOf(load),
  })
  const result = JSON.parse(output) as HttpResult
  if (result.refused > 0) {
    throw new Error(`${result.refused} of ${result.answered} requests were refused: ${result.firstRefusal}`)
  }
  return result
}

/** Answers per second of a result. */
export function perSecond(result: HttpResult): number {
  return (result.answered / (result.endedAtMs - result.startedAtMs)) * 1000
}

/** A send of text alone. `from` is given for a send without an inbox. */
interface TextSend {
  recipient: string
  textBytes: number
  from?: string
}

/** Writes the JSON of a send with `textBytes` of text. Each number gives a different text. */
export function sendBody({ recipient, textBytes, from }: TextSend, number = 0): string {
  const text = writeParagraphs(randomOf(number), textBytes).join('\n\n')
  const subject = 'A message of the benchmark'
  const sender = from === undefined ? {} : { from: { email: from } }
  return JSON.stringify({ ...sender, to: [{ email: recipient }], subject, text })
}

/** Writes many such sends to one file. */
export function saveSends(folder: string, send: TextSend): SavedPool {
  const count = poolSizeOf(send.textBytes)
  return saveBodies(
    folder,
    Array.from({ length: count }, (_, number) => sendBody(send, number)),
  )
}

/** Writes sends of whole mails with text and HTML, some with a file, to these recipients round robin. */
export function saveMailSends(folder: string, recipients: readonly string[], shape: MailShape): SavedPool {
  const bodies = Array.from({ length: poolSizeOf(shape.textBytes) }, (_, number) => {
    const { file, ...content } = writeContent(number, shape)
    const attachments =
      file === null
        ? {}
        : { attachments: [{ filename: 'report.pdf', contentType: 'application/pdf', content: file }] }
    return JSON.stringify({
      to: [{ email: recipients[number % recipients.length] }],
      ...content,
      ...attachments,
    })
  })
  return saveBodies(folder, bodies)
}

function saveBodies(folder: string, bodies: readonly string[]): SavedPool {
  return savePool(
    join(folder, `${randomUUID()}.bodies`),
    bodies.map((body) => Buffer.from(body)),
  )
}
