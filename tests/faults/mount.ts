// Under load, a lazy unmount removes the disk of the blob folder and it returns: acknowledged large mail keeps every byte.
import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Acceptance, Api, Inbox } from '../support/api.ts'
import { createCaller, type Posthorn, startPosthorn } from '../support/service.ts'
import { sendMail } from '../support/smtp-sender.ts'
import { type Scope, until } from '../support/until.ts'
import type { Ledger } from './ledger.ts'

const rounds = 3
/** The number of mails and sends answered in each state of the folder before it changes. */
const answersEach = 12
const largeBytes = 350_000

/** Acknowledged mails by Message-ID, sends by message id, each with the digest of its content. */
interface Book {
  mails: Map<string, string>
  sends: Map<string, string>
  refused: { mails: number; sends: number }
  surprises: string[]
}

/** Null if this user may not mount. */
export async function runMountLoss(
  scope: Scope,
  { report }: { report: (line: string) => void },
): Promise<Ledger | null> {
  const disk = mountableDisk(scope)
  if (!disk) return null
  const posthorn = await startPosthorn(scope, {
    env: {
      POSTHORN_BLOB_URL: `file:${disk.folder}`,
      POSTHORN_DELIVERY: 'capture',
      POSTHORN_RETRY_SCHEDULE: '1s,2s',
    },
  })
  const { api } = await createCaller(posthorn)
  const inbox = await api.createInbox()
  const book: Book = {
    mails: new Map(),
    sends: new Map(),
    surprises: [],
    refused: { mails: 0, sends: 0 },
  }
  const load = startLoad({ posthorn, api, inbox, book })
  const answers = () => book.mails.size + book.sends.size + book.refused.mails + book.refused.sends
  const untilMore = async (what: string) => {
    const before = answers()
    await until(what, () => answers() >= before + answersEach, { timeoutMs: 120_000 })
  }
  for (let round = 1; round <= rounds; round++) {
    await untilMore('large mail with the disk')
    disk.unmount()
    await untilReady(posthorn, 503)
    await untilMore('large mail without the disk')
    const below = filesBelow(disk.folder)
    if (below.length > 0) book.surprises.push(`below the mount point was written: ${below.join(', ')}`)
    disk.mount()
    await untilReady(posthorn, 200)
    report(`round ${round}: ${book.mails.size} times 250, ${book.sends.size} times 202`)
  }
  await untilMore('large mail at the end')
  await load.stop()
  return await reckon(api, inbox, book)
}

/** A folder with a second one mounted on it, by a bind mount. Null if this user may not mount. */
function mountableDisk(scope: Scope): { folder: string; mount(): void; unmount(): void } | null {
  const above = mkdtempSync(join(tmpdir(), 'posthorn-mount-'))
  const [disk, folder] = [join(above, 'disk'), join(above, 'blobs')]
  for (const made of [disk, folder]) mkdirSync(made)
  const words = ['--bind', disk, folder]
  const isMounted = () => statSync(folder).ino === statSync(disk).ino
  scope.after(() => {
    while (isMounted()) execFileSync('umount', ['-l', folder])
    rmSync(above, { recursive: true, force: true })
  })
  if (spawnSync('mount', words).status !== 0) return null
  return {
    folder,
    mount: () => void execFileSync('mount', words),
    unmount: () => void execFileSync('umount', ['-l', folder]),
  }
}

/**
 * Paths of the files below the folder. The service may make an empty shard folder there between its check of the mark and
 * the unmount. Mail must never be there, because the mount would hide it.
 */
function filesBelow(folder: string): string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
  return entries.filter((entry) => !entry.isDirectory()).map(({ parentPath, name }) => join(parentPath, name))
}

async function untilReady({ operator }: Posthorn, status: number): Promise<void> {
  await until(`/readyz to be ${status}`, async () => (await fetch(`${operator}/readyz`)).status === status)
}

interface LoadOptions {
  posthorn: Posthorn
  api: Api
  inbox: Inbox
  book: Book
}

/** Two senders by SMTP and two by HTTP, one mail after another, until `stop`. */
function startLoad(options: LoadOptions): { stop(): Promise<void> } {
  const state = { isRunning: true, number: 0 }
  const repeat = async (one: (options: LoadOptions, number: number) => Promise<void>) => {
    while (state.isRunning) {
      await one(options, state.number++)
      await pause(100)
    }
  }
  const workers = [repeat(mailOne), repeat(mailOne), repeat(sendOne), repeat(sendOne)]
  return {
    stop: async () => {
      state.isRunning = false
      await Promise.all(workers)
    },
  }
}

/** Content that is unique to the number. */
function contentOf(number: number): string {
  return `${number} `
    .padEnd(76, 'x')
    .concat('\r\n')
    .repeat(Math.ceil(largeBytes / 78))
}

async function mailOne({ posthorn, inbox, book }: LoadOptions, number: number): Promise<void> {
  const id = `<mount-${number}@sender.test>`
  const head = `From: s@sender.test\r\nTo: ${inbox.address}\r\nSubject: ${number}\r\nMessage-ID: ${id}\r\n\r\n`
  const raw = Buffer.from(head + contentOf(number))
  const { outcome, reply } = await sendMail(posthorn.smtp, {
    from: 's@sender.test',
    to: inbox.address,
    raw,
  })
  if (outcome === 'accepted') book.mails.set(id, digest(contentOf(number)))
  else book.refused.mails++
  if (outcome !== 'accepted' && !/^45[12]/.test(reply)) book.surprises.push(`${id}: ${outcome} ${reply}`)
}

async function sendOne({ api, inbox, book }: LoadOptions, number: number): Promise<void> {
  const content = Buffer.from(contentOf(number)).toString('base64')
  const answer = await api.call<Acceptance>(`/v1/inboxes/${inbox.id}/messages`, {
    method: 'POST',
    idempotencyKey: `mount-${number}-key`,
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
async function reckon(api: Api, inbox: Inbox, { mails, sends, refused, surprises }: Book): Promise<Ledger> {
  const expected = mails.size + sends.size
  const messages = await until(
    'every acknowledged mail to be filed',
    async () => {
      const found = (await api.exported(inbox.id)).filter(({ direction }) => direction === 'inbound')
      return found.length >= expected ? found : null
    },
    { timeoutMs: 180_000, everyMs: 500 },
  )
  const kept = new Set<string>()
  for (const { id, internetMessageId, attachments } of messages) {
    const body = await api.bytes(`/v1/messages/${id}/source`).catch(() => null)
    if (!body) continue
    const wanted = mails.get(internetMessageId) ?? sends.get(internetMessageId)
    const found = mails.has(internetMessageId)
      ? digest(body.subarray(body.indexOf('\r\n\r\n') + 4))
      : attachments?.[0]?.sha256
    if (found === wanted) kept.add(internetMessageId)
  }
  const lost = [...mails.keys(), ...sends.keys()].filter((id) => !kept.has(id))
  return {
    figures: [
      ['lazy unmounts under load', rounds],
      ['large mails, 250 read', mails.size],
      ['  refused', refused.mails],
      ['large sends, 202 read', sends.size],
      ['  refused', refused.sends],
      ['lost', lost.length],
    ],
    violations: [...surprises, ...lost.map((id) => `${id} was acknowledged, and its bytes are not there`)],
  }
}
