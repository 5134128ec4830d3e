// The mixed load of a soak at a fixed rate: mail in, sends, reads, searches and deletions, on a service that calls a webhook.
import { fileURLToPath } from 'node:url'
import type pg from 'pg'
import type { Scope } from '../../tests/support/until.ts'
import { startChild, temporaryFolder, untilReady } from '../children.ts'
import { call, createInbox, loadOf, type Posthorn } from '../peers/posthorn.ts'
import { saveMailSends, sendByHttp } from './http.ts'
import type { MailShape } from './mail-content.ts'
import { randomOf, writeWords } from './prose.ts'
import { repeat } from './schedule.ts'
import { recipient, type SavedMails, saveMails, sendBySmtp } from './smtp.ts'
import { makeVerifiedSender, writeMails } from './verified-mail.ts'

export interface MixedLoad {
  posthorn: Posthorn
  session: pg.Client
  inboxId: string
  senderId: string
  small: SavedMails
  large: SavedMails
  folder: string
  hook: Hook
}

interface Hook {
  url: string
  calls(): Promise<number>
}

/** The finished work of the load, and each unexpected answer. */
export interface Done {
  received: number
  sent: number
  reads: number
  searches: number
  deletions: number
  webhookCalls: number
  failures: string[]
}

const usual: MailShape = { textBytes: 5_000, files: 'some' }
/** A blob on S3. */
const large: MailShape = { textBytes: 5_000, files: 'none', attachedBytes: 300_000 }
/** One mail in ten is large. */
const largeShare = 0.1
/** Mail is deleted at this age, so that as much is stored at the end as after the first minutes. */
const keptMs = 5 * 60_000
const deleteEveryMs = 10_000

export const verifiedSender = makeVerifiedSender()

export async function prepareMixed(scope: Scope, posthorn: Posthorn, session: pg.Client): Promise<MixedLoad> {
  const folder = temporaryFolder(scope, 'mixed')
  const save = (shape: MailShape) =>
    saveMails(folder, writeMails(verifiedSender.write, shape, [recipient]), [recipient])
  const load: MixedLoad = {
    posthorn,
    session,
    folder,
    inboxId: await createInbox(posthorn, 'u'),
    senderId: await createInbox(posthorn, 'sender'),
    small: save(usual),
    large: save(large),
    hook: await startHook(scope),
  }
  await call(posthorn, { method: 'POST', path: '/v1/webhooks', body: JSON.stringify({ url: load.hook.url }) })
  return load
}

/** Runs the load for `durationMs`: `perSecond` mails in and as many sends, twice as many reads, and a quarter of searches. */
export async function runMixed(load: MixedLoad, durationMs: number, perSecond: number): Promise<Done> {
  const over = AbortSignal.timeout(durationMs)
  const done: Done = {
    received: 0,
    sent: 0,
    reads: 0,
    searches: 0,
    deletions: 0,
    webhookCalls: 0,
    failures: [],
  }
  const noted = (work: () => Promise<void>) => async () => {
    await work().catch((error) => void done.failures.push((error as Error).message))
  }
  await Promise.all([
    noted(() => receive(load, done, { durationMs, perSecond }))(),
    noted(() => send(load, done, { durationMs, perSecond }))(),
    repeat(
      noted(() => read(load, done)),
      500 / perSecond,
      over,
    ),
    repeat(
      noted(() => search(load, done)),
      4_000 / perSecond,
      over,
    ),
    repeat(
      noted(() => deleteOld(load, done)),
      deleteEveryMs,
      over,
    ),
  ])
  done.webhookCalls = await load.hook.calls()
  return done
}

interface Pace {
  durationMs: number
  perSecond: number
}

async function receive({ posthorn, small, large }: MixedLoad, done: Done, pace: Pace): Promise<void> {
  const common = { sessions: 2, connections: 'per-message', port: posthorn.smtpPort } as const
  const { durationMs, perSecond } = pace
  const both = await Promise.all([
    sendBySmtp({ ...small, ...common, durationMs, perSecond: perSecond * (1 - largeShare) }),
    sendBySmtp({ ...large, ...common, durationMs, perSecond: perSecond * largeShare }),
  ])
  for (const { accepted } of both) done.received += accepted
}

async function send({ posthorn, senderId, folder }: MixedLoad, done: Done, pace: Pace): Promise<void> {
  const result = await sendByHttp({
    ...loadOf(posthorn),
    method: 'POST',
    paths: [`/v1/inboxes/${senderId}/messages`],
    bodies: saveMailSends(folder, ['u@far.test'], usual),
    connections: 4,
    expectStatus: '202',
    ...pace,
  })
  done.sent += result.answered
}

/** Reads a list of messages, one message of it with its thread and its source, and the delivery metrics, in rotation. */
async function read({ posthorn, inboxId }: MixedLoad, done: Done): Promise<void> {
  const list = `/v1/inboxes/${inboxId}/messages?limit=20`
  const turn = done.reads++ % 4
  if (turn === 0) return void (await call(posthorn, { method: 'GET', path: '/v1/metrics/delivery?hours=24' }))
  const { messages } = await call<{ messages: { id: string; threadId: string }[] }>(posthorn, {
    method: 'GET',
    path: list,
  })
  const message = messages[done.reads % Math.max(1, messages.length)]
  if (turn === 1 || !message) return
  if (turn === 2)
    return void (await call(posthorn, { method: 'GET', path: `/v1/threads/${message.threadId}` }))
  const response = await fetch(`${posthorn.http}/v1/messages/${message.id}/source`, {
    headers: { 'x-api-key': posthorn.key },
  })
  await response.arrayBuffer()
  if (!response.ok) throw new Error(`the source of ${message.id}: ${response.status}`)
}

async function search({ posthorn, inboxId }: MixedLoad, done: Done): Promise<void> {
  const words = encodeURIComponent(writeWords(randomOf(done.searches++), 1))
  await call(posthorn, { method: 'GET', path: `/v1/inboxes/${inboxId}/messages?q=${words}&limit=20` })
}

/** Deletes the messages that are old enough, through the API. */
async function deleteOld({ posthorn, session }: MixedLoad, done: Done): Promise<void> {
  const { rows } = await session.query(
    'select id from message where created_at < now() - make_interval(secs => $1) order by id limit 1000',
    [keptMs / 1000],
  )
  for (const { id } of rows) {
    const response = await fetch(`${posthorn.http}/v1/messages/${id}`, {
      method: 'DELETE',
      headers: { 'x-api-key': posthorn.key },
    })
    if (response.status !== 204)
      throw new Error(`deleting ${id}: ${response.status} ${await response.text()}`)
    done.deletions++
  }
}

async function startHook(scope: Scope): Promise<Hook> {
  const program = fileURLToPath(new URL('webhook-receiver.ts', import.meta.url))
  const child = startChild(scope, temporaryFolder(scope, 'hook'), process.execPath, [program])
  const port = await untilReady(child, 'the receiver of webhooks listens', () => Number(child.output()))
  const calls = async () => {
    const counts = (await (await fetch(`http://127.0.0.1:${port}/count`)).json()) as { fast: number }
    return counts.fast
  }
  return { url: `http://127.0.0.1:${port}/fast`, calls }
}
