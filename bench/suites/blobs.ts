// Large mail with its bytes in a folder and on S3, next to each other; and a move of ten thousand blobs under load.
import { join } from 'node:path'
import type { Blobs } from '../../src/blobs/blobs.ts'
import { openBlobs } from '../../src/blobs/open-blobs.ts'
import { parseBlobStore } from '../../src/config/linked-settings.ts'
import type { Scope } from '../../tests/support/until.ts'
import { temporaryFolder } from '../children.ts'
import { startDns } from '../load/dns.ts'
import { sendByHttp } from '../load/http.ts'
import type { MailShape } from '../load/mail-content.ts'
import { type offerBySmtp, recipient, type SavedMails, saveMails, sendBySmtp } from '../load/smtp.ts'
import { makeVerifiedSender, writeMails } from '../load/verified-mail.ts'
import { call, loadOf, type Posthorn, startPosthorn } from '../peers/posthorn.ts'
import {
  countInbox,
  type InboxCounter,
  measuredOf,
  openSession,
  shareDatabase,
} from '../peers/posthorn-store.ts'
import { startS3 } from '../peers/s3.ts'
import { type Entrant, enter, type Measured, type Plan, runCase, wantsCase, withCost } from '../plan.ts'
import { formatFigures } from '../report.ts'
import type { Sample } from '../rounds.ts'
import { cpuMsOf } from '../usage.ts'

interface Store extends Measured {
  posthorn: Posthorn
  counter: InboxCounter
  /** The programs of S3, which are not the service's. Empty for a folder. */
  s3Pids(): number[]
}

interface Stage {
  folder: string
  dns: string
  mails(shape: MailShape): SavedMails
}

interface Size {
  mail: MailShape
  /** Mails of one measurement. */
  count: number
}

const withFile = (attachedBytes: number): MailShape => ({ textBytes: 5_000, files: 'none', attachedBytes })
/** Mails of 100 KB stay in the database, whatever the store of blobs is. A mail of more than 256 KiB is a blob. */
const sizes: Record<string, Size> = {
  '100 KB': { mail: withFile(70_000), count: 400 },
  '300 KB': { mail: withFile(215_000), count: 200 },
  '5 MB': { mail: withFile(3_650_000), count: 30 },
}
const sessions = 10
const readers = 4
/** The listed messages that are read. */
const listed = 20
/** Mail that arrives while blobs move. */
const movingRate = 10

export async function benchBlobs(scope: Scope, plan: Plan): Promise<void> {
  const stage = await setStage(scope)
  const cases = Object.entries(sizes).map(([name, size]) => ({ size, title: `blobs, mail of ${name}` }))
  const wanted = cases.filter(({ title }) => wantsCase(plan, title))
  if (wanted.length > 0) {
    const entrants = [
      await enter('folder', () => startOnFolder(scope, stage)),
      await enter('S3', () => startOnS3(scope, stage)),
    ]
    for (const { size, title } of wanted) await benchSize(plan, stage, { size, title, entrants })
  }
  const title = `blobs, a move of ${movedCount(plan).toLocaleString('en')} under load`
  if (wantsCase(plan, title))
    plan.print(formatFigures(title, [{ name: 'once', sample: await move(scope, plan, stage) }]))
}

async function benchSize(
  plan: Plan,
  { mails }: Stage,
  { size, title, entrants }: { size: Size; title: string; entrants: Entrant<Store>[] },
): Promise<void> {
  const saved = mails(size.mail)
  const count = plan.extent === 'quick' ? 4 : size.count
  await runCase(
    plan,
    `${title}, ${sessions} sessions in, ${readers} readers`,
    entrants,
    (store) => () => measure(store, saved, count),
  )
}

/** Receives mail until all of it is filed, then reads its source by HTTP. */
async function measure(store: Store, mails: SavedMails, messages: number): Promise<Sample> {
  const { posthorn, counter, s3Pids } = store
  const s3Before = cpuMsOf(s3Pids())
  const received = await withCost(store, async () => {
    const load = { ...mails, sessions, connections: 'kept', port: posthorn.smtpPort } as const
    const result = await sendBySmtp({ ...load, count: messages })
    const filedAtMs = await counter.reach(messages)
    return { messages, ...result, filedMs: filedAtMs - result.startedAtMs }
  })
  const s3Received = cpuMsOf(s3Pids())
  const paths = await sourcesOf(store)
  const read = await withCost(store, async () => {
    const load = { ...loadOf(posthorn), method: 'GET', connections: readers, expectStatus: '200' } as const
    const result = await sendByHttp({ ...load, paths, count: messages })
    return { messages, ...result }
  })
  const elapsedMs = read.endedAtMs - read.startedAtMs
  return {
    'in: CPU ms/message': received.cpuUs / 1000,
    'in: CPU ms/message of S3': (s3Received - s3Before) / messages,
    'in: 250 after, p50, ms': received.latencyMs.p50,
    'in: 250 after, p99, ms': received.latencyMs.p99,
    'in: accepted/s': (messages / (received.endedAtMs - received.startedAtMs)) * 1000,
    'in: filed/s': (messages / received.filedMs) * 1000,
    'read: CPU ms/message': read.cpuUs / 1000,
    'read: CPU ms/message of S3': (cpuMsOf(s3Pids()) - s3Received) / messages,
    'read: p50, ms': read.latencyMs.p50,
    'read: p99, ms': read.latencyMs.p99,
    'read/s': (messages / elapsedMs) * 1000,
  }
}

/** The paths of the sources of the newest messages, which are those just received. */
async function sourcesOf({ posthorn, counter }: Store): Promise<string[]> {
  const path = `/v1/inboxes/${counter.inboxId}/messages?limit=${listed}`
  const { messages } = await call<{ messages: { id: string }[] }>(posthorn, { method: 'GET', path })
  return messages.map(({ id }) => `/v1/messages/${id}/source`)
}

async function setStage(scope: Scope): Promise<Stage> {
  const folder = temporaryFolder(scope, 'blobs')
  const sender = makeVerifiedSender()
  const { address } = await startDns(scope, sender.zone, 'example')
  const mails = (shape: MailShape) =>
    saveMails(folder, writeMails(sender.write, shape, [recipient]), [recipient])
  return { folder, dns: address, mails }
}

async function startOnFolder(scope: Scope, { dns }: Stage): Promise<Store> {
  const posthorn = await startPosthorn(scope, { dns })
  return await watched(scope, posthorn, () => [])
}

async function startOnS3(scope: Scope, { dns }: Stage): Promise<Store> {
  const s3 = await startS3(scope)
  const posthorn = await startPosthorn(scope, { dns, env: { ...s3.env, POSTHORN_BLOB_URL: s3.url } })
  return await watched(scope, posthorn, s3.pids)
}

async function watched(scope: Scope, posthorn: Posthorn, s3Pids: Store['s3Pids']): Promise<Store> {
  const counter = await countInbox(scope, posthorn)
  return { ...(await measuredOf(scope, posthorn)), posthorn, counter, s3Pids }
}

function movedCount({ extent }: Plan): number {
  return extent === 'quick' ? 50 : 10_000
}

/** Moves blobs from the folder to S3 while mail arrives, then the rest without nodes, and compares all of them. */
async function move(scope: Scope, plan: Plan, { dns, folder, mails }: Stage): Promise<Sample> {
  const s3 = await startS3(scope)
  const dataFolder = temporaryFolder(scope, 'moved')
  const posthorn = await startPosthorn(scope, { dns, dataFolder, env: s3.env })
  const counter = await countInbox(scope, posthorn)
  const session = await openSession(scope, await shareDatabase(scope, posthorn.dataFolder))
  const load = { ...mails(sizes['300 KB']!.mail), connections: 'kept', port: posthorn.smtpPort } as const
  const count = movedCount(plan)
  await sendBySmtp({ ...load, sessions, count })
  await counter.reach(count)
  const from = `file:${join(posthorn.dataFolder, 'blobs')}`

  const arriving = new AbortController()
  const arrivals = keepSending({ ...load, sessions: 2 }, arriving.signal)
  const startedMs = performance.now()
  const first = await posthorn.command('blobs', 'move', from, s3.url)
  const underLoadMs = performance.now() - startedMs
  arriving.abort()
  const { accepted, p99 } = await arrivals
  await counter.reach(accepted)
  await posthorn.stop()
  const restMs = performance.now()
  const second = await posthorn.command('blobs', 'move', from, s3.url)
  const stoppedMs = performance.now() - restMs
  if (second.status !== 'done') throw new Error(`the move ended as ${second.status}`)

  const { rows } = await session.query('select blob from raw where blob is not null')
  const [old, next] = await Promise.all([from, s3.url].map((url) => openStore(url, s3.env, folder)))
  const { equal, bytes } = await compareAll(
    rows.map(({ blob }) => blob),
    old!,
    next!,
  )
  if (equal !== rows.length) throw new Error(`only ${equal} of ${rows.length} blobs are equal`)
  return {
    'moved while mail arrived': first.copied,
    's for that': underLoadMs / 1000,
    'moved while no node ran': second.copied,
    's for these': stoppedMs / 1000,
    lost: first.lost.length + second.lost.length,
    'blobs, each equal byte by byte': equal,
    MB: bytes / 1e6,
    'mails accepted meanwhile': accepted,
    '250 after it was due, p99, ms': p99,
  }
}

/** Sends mail at a fixed rate until `over`, in loads of a few seconds. None may be refused. */
async function keepSending(
  load: Omit<Parameters<typeof offerBySmtp>[0], 'durationMs' | 'count' | 'perSecond'>,
  over: AbortSignal,
): Promise<{ accepted: number; p99: number }> {
  const sum = { accepted: 0, p99: 0 }
  while (!over.aborted) {
    const { accepted, latencyMs } = await sendBySmtp({ ...load, durationMs: 5_000, perSecond: movingRate })
    sum.accepted += accepted
    sum.p99 = Math.max(sum.p99, latencyMs.p99)
  }
  return sum
}

async function openStore(url: string, env: Record<string, string>, folder: string): Promise<Blobs> {
  return await openBlobs({ store: parseBlobStore(url, env, folder), scratchFolder: folder, databaseId: null })
}

async function compareAll(
  keys: string[],
  old: Blobs,
  next: Blobs,
): Promise<{ equal: number; bytes: number }> {
  const found = { equal: 0, bytes: 0 }
  for (const key of keys) {
    const [was, is] = await Promise.all(
      [old, next].map(async (blobs) => Buffer.concat(await blobs.read(key).toArray())),
    )
    if (was!.equals(is!)) found.equal++
    found.bytes += was!.length
  }
  return found
}
