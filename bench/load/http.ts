// HTTP load: what is asked of the program that sends requests, and the bodies that they have.
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
  /** Taken in turn. */
  paths: readonly string[]
  headers: Record<string, string>
  /** JSON, taken in turn; each POST carries an idempotency key of its own, or one of `keys` in turn, with its body. */
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

/** Runs the load in a program of its own; throws when any answer has another status than the expected one. */
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

/** What is sent as text alone, and to whom; a send of no inbox says who it is from. */
interface TextSend {
  recipient: string
  textBytes: number
  from?: string
}

/** The JSON of a send with `textBytes` of text; each number says something else. */
export function sendBody({ recipient, textBytes, from }: TextSend, number = 0): string {
  const text = writeParagraphs(randomOf(number), textBytes).join('\n\n')
  const subject = 'A message of the benchmark'
  const sender = from === undefined ? {} : { from: { email: from } }
  return JSON.stringify({ ...sender, to: [{ email: recipient }], subject, text })
}

/** Many of them, in a file. */
export function saveSends(folder: string, send: TextSend): SavedPool {
  const count = poolSizeOf(send.textBytes)
  return saveBodies(
    folder,
    Array.from({ length: count }, (_, number) => sendBody(send, number)),
  )
}

/** Sends of whole mails, text beside HTML and some with a file, to these recipients in turn. */
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
