// Sends plain mails one after another from its own thread, and times each from the connection to its commit.
import { fileURLToPath } from 'node:url'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import pg from 'pg'
import { sendMail } from './smtp-sender.ts'
import { until } from './until.ts'

export interface PlainMails {
  smtp: { host: string; port: number }
  database: pg.ClientConfig
  address: string
}

const mostTimes = 500

/** A sender that the test's own work does not delay. */
export class PlainSender {
  readonly #worker: Worker
  readonly #exited: Promise<void>
  #times: number[] = []

  constructor(mails: PlainMails) {
    this.#worker = new Worker(fileURLToPath(import.meta.url), { workerData: mails })
    this.#worker.on('message', (ms: number) => this.#times.push(ms))
    this.#exited = new Promise((resolve, reject) =>
      this.#worker.on('error', reject).on('exit', () => resolve()),
    )
    this.#exited.catch(() => {})
  }

  /** The times in milliseconds of the mails since the last call. Waits for at least `least` of them. */
  async take(least: number): Promise<number[]> {
    const enough = until(`${least} plain mails`, () => this.#times.length >= least, { timeoutMs: 60_000 })
    await Promise.race([enough, this.#exited])
    return this.#times.splice(0)
  }

  async end(): Promise<void> {
    this.#worker.postMessage('end')
    await this.#exited
  }
}

async function sendPlain({ smtp, database, address }: PlainMails): Promise<void> {
  const client = new pg.Client(database)
  await client.connect()
  let isOver = false
  parentPort!.once('message', () => (isOver = true))
  for (let count = 0; count < mostTimes && !isOver; count++)
    parentPort!.postMessage(await timeOne(smtp, client, address))
  await client.end()
}

async function timeOne(smtp: PlainMails['smtp'], client: pg.Client, to: string): Promise<number> {
  const raw = Buffer.from('From: b@far.test\r\nSubject: Plain\r\n\r\nHello.\r\n')
  const startMs = performance.now()
  const { outcome, reply } = await sendMail(smtp, { from: 'b@far.test', to, raw })
  if (outcome !== 'accepted') throw new Error(`a plain mail was ${outcome}: ${reply}`)
  await untilFiled(client, idIn(reply))
  return performance.now() - startMs
}

/** The message id in a reply to the final dot. */
export function idIn(reply: string): string {
  return /queued as (\S+)/.exec(reply)![1]!
}

export async function untilFiled(client: pg.Client, id: string): Promise<void> {
  const isFiled = async () => (await client.query('select from message where id = $1', [id])).rowCount === 1
  await until(`${id} to be filed`, isFiled, { everyMs: 2, timeoutMs: 120_000 })
}

if (!isMainThread && parentPort) await sendPlain(workerData as PlainMails)
