// A load of large mail, whose bytes are in the blob store: each acknowledged mail keeps every byte.
import { createHash } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { Acceptance, Api, Inbox } from '../support/api.ts'
import type { Posthorn } from '../support/service.ts'
import { sendMail } from '../support/smtp-sender.ts'
import { until } from '../support/until.ts'
import type { Ledger } from './ledger.ts'

/** The number of mails and sends that `untilMore` waits for. */
const answersEach = 12
const largeBytes = 350_000

/** Acknowledged mails by Message-ID, sends by message id, each with the digest of its content. */
interface Book {
  mails: Map<string, string>
  sends: Map<string, string>
  refused: { mails: number; sends: number }
  surprises: string[]
}

interface LoadOptions {
  posthorn: Posthorn
  api: Api
  inbox: Inbox
  /** The longest wait for the reply to a mail. */
  timeoutMs?: number
}

/** Two senders by SMTP and two by HTTP, one mail after another, until `stop`. */
export class LargeLoad {
  readonly book: Book = {
    mails: new Map(),
    sends: new Map(),
    surprises: [],
    refused: { mails: 0, sends: 0 },
  }
  readonly #options: LoadOptions
  readonly #workers: Promise<void>[]
  #isRunning = true
  #number = 0

  constructor(options: LoadOptions) {
    this.#options = options
    const one = [mailOne, mailOne, sendOne, sendOne]
    this.#workers = one.map((send) => this.#repeat(send))
  }

  get accepted(): number {
    return this.book.mails.size + this.book.sends.size
  }

  get refused(): number {
    return this.book.refused.mails + this.book.refused.sends
  }

  /** Waits until this many more mails and sends were answered. */
  async untilMore(what: string, count = answersEach): Promise<void> {
    const before = this.accepted + this.refused
    await until(what, () => this.accepted + this.refused >= before + count, { timeoutMs: 180_000 })
  }

  /** Waits until this many more mails and sends were accepted. */
  async untilAccepted(what: string, count = answersEach): Promise<void> {
    const before = this.accepted
    await until(what, () => this.accepted >= before + count, { timeoutMs: 180_000 })
  }

  async stop(): Promise<void> {
    this.#isRunning = false
    await Promise.all(this.#workers)
  }

  async #repeat(send: typeof mailOne): Promise<void> {
    while (this.#isRunning) {
      await send(this.#options, this.book, this.#number++)
      await pause(100)
    }
  }
}

/** Content that is unique to the number. */
function contentOf(number: number): string {
  return `${number} `
    .padEnd(76, 'x')
    .concat('\r\n')
    .repeat(Math.ceil(largeBytes / 78))
}

async function mailOne({ posthorn, inbox, timeoutMs }: LoadOptions, book: Book, number: number) {
  const id = `<large-${number}@sender.test>`
  const head = `From: s@sender.test\r\nTo: ${inbox.address}\r\nSubject: ${number}\r\nMessage-ID: ${id}\r\n\r\n`
  const raw = Buffer.from(head + contentOf(number))
  const mail = { from: 's@sender.test', to: inbox.address, raw }
  const { outcome, reply, stage } = await sendMail(posthorn.smtp, mail, { timeoutMs })
  if (outcome === 'accepted') book.mails.set(id, digest(contentOf(number)))
  else book.refused.mails++
  if (outcome !== 'accepted' && !/^45[12]/.test(reply))
    book.surprises.push(`${id}: ${outcome} at ${stage} ${reply}`)
}

async function sendOne({ api, inbox }: LoadOptions, book: Book, number: number): Promise<void> {
  const content = Buffer.from(contentOf(number)).toString('base64')
  const answer = await api.call<Acceptance>(`/v1/inboxes/${inbox.id}/messages`, {
    method: 'POST',
    idempotencyKey: `large-${number}-key`,
    body: {
      to: [{ email: inbox.address }],
      subject: `Send ${number}`,
      text: 'Attached.',
      attachments: [{ filename: 'large.txt', contentType: 'text/plain', content }],
    },
  })
  if (answer.status === 202) book.sends.set(answer.body.message.internetMessageId, digest(contentOf(number)))
  else book.refused.sends++
  if (answer.status !== 202 && answer.status !== 503)
    book.surprises.push(`send ${number}: ${answer.status} ${JSON.stringify(answer.body)}`)
}

function digest(content: string | Buffer): string {
  return createHash('sha256').update(content).digest('hex')
}

/** Waits until every acknowledged mail is filed, and compares its bytes with the bytes that were sent. */
export async function reckonLarge(
  api: Api,
  inbox: Inbox,
  { mails, sends, refused, surprises }: Book,
): Promise<Ledger> {
  const acknowledged = [...mails.keys(), ...sends.keys()]
  const messages = await until(
    'every acknowledged mail to be filed',
    async () => {
      const found = (await api.exported(inbox.id)).filter(({ direction }) => direction === 'inbound')
      const ids = new Set(found.map(({ internetMessageId }) => internetMessageId))
      return acknowledged.every((id) => ids.has(id)) ? found : null
    },
    { timeoutMs: 180_000, everyMs: 500 },
  )
  const copies = new Map<string, number>()
  const kept = new Set<string>()
  for (const { id, internetMessageId, attachments } of messages) {
    copies.set(internetMessageId, (copies.get(internetMessageId) ?? 0) + 1)
    const body = await api.bytes(`/v1/messages/${id}/source`).catch(() => null)
    if (!body) continue
    const wanted = mails.get(internetMessageId) ?? sends.get(internetMessageId)
    const found = mails.has(internetMessageId)
      ? digest(body.subarray(body.indexOf('\r\n\r\n') + 4))
      : attachments?.[0]?.sha256
    if (found === wanted) kept.add(internetMessageId)
  }
  const lost = acknowledged.filter((id) => !kept.has(id))
  const doubled = [...copies].filter(([, count]) => count > 1).map(([id]) => id)
  return {
    figures: [
      ['large mails, 250 read', mails.size],
      ['  refused', refused.mails],
      ['large sends, 202 read', sends.size],
      ['  refused', refused.sends],
      ['lost', lost.length],
      ['doubled', doubled.length],
    ],
    violations: [
      ...surprises,
      ...lost.map((id) => `${id} was acknowledged, and its bytes are not there`),
      ...doubled.map((id) => `${id} is there ${copies.get(id)} times`),
    ],
  }
}
