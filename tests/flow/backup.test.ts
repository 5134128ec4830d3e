// Backups: made while mail flows, restored whole or not at all, and held until the operator lets the copy out.
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { Api, type Inbox, type Message } from '../support/api.ts'
import {
  type BackupAnswer,
  command,
  countFiles,
  emptyPlace,
  heavyMail,
  killWhen,
  passphrase,
  temporaryFolder,
  verify,
} from '../support/backup.ts'
import { send } from '../support/node.ts'
import { createCaller, type Posthorn, startPosthorn } from '../support/service.ts'
import { type Sink, startSink } from '../support/sink.ts'
import { sendMail } from '../support/smtp-sender.ts'
import { until } from '../support/until.ts'
import { startReceiver, type WebhookReceiver } from '../support/webhook-receiver.ts'

interface Stage {
  posthorn: Posthorn
  api: Api
  secret: string
  inboxes: Inbox[]
  sink: Sink
  receiver: WebhookReceiver
  /** Where the backup goes. */
  folder: string
}

/** A service whose mail goes to a sink and whose events go to a receiver. */
async function setStage(t: TestContext, env: Record<string, string> = {}): Promise<Stage> {
  const [sink, receiver] = [await startSink(t), await startReceiver(t)]
  const posthorn = await startPosthorn(t, {
    env: {
      ...passphrase,
      POSTHORN_DELIVERY: 'relay',
      POSTHORN_RELAY_URL: sink.url,
      POSTHORN_ALLOW_PRIVATE_NETWORKS: 'true',
      POSTHORN_RETRY_SCHEDULE: '1s',
      POSTHORN_WEBHOOK_RETRY_SCHEDULE: '1s,1s,1s,1s,1s,1s,1s,1s,1s',
      ...env,
    },
  })
  const { api, secret } = await createCaller(posthorn)
  const inboxes = [await api.createInbox(), await api.createInbox()]
  return { posthorn, api, secret, inboxes, sink, receiver, folder: join(temporaryFolder(t), 'backup') }
}

/** One mail from outside; resolves once it is acknowledged. */
async function receive({ posthorn }: Pick<Stage, 'posthorn'>, inbox: Inbox, id: string, bytes: number) {
  const raw = heavyMail(inbox.address, id, bytes)
  const { outcome, reply } = await sendMail(posthorn.smtp, { from: 's@sender.test', to: inbox.address, raw })
  assert.equal(outcome, 'accepted', reply)
}

const largeBytes = 600_000

const inboundOf = async (api: Api, inbox: Inbox) =>
  (await api.exported(inbox.id)).filter(({ direction }) => direction === 'inbound')

const sourceOf = (api: Api, { id }: Message) => api.bytes(`/v1/messages/${id}/source`)

/** What has been filed, each message with its source. */
async function filed(api: Api, inbox: Inbox, count: number) {
  const messages = await until('the mail to be filed', async () => {
    const found = await inboundOf(api, inbox)
    return found.length >= count ? found : null
  })
  return await Promise.all(
    messages.map(async (message) => ({ message, source: await sourceOf(api, message) })),
  )
}

/** Sends, mail from outside and deletions at once, until it is stopped. */
function workOn(stage: Stage, inbox: Inbox): { stop(): Promise<unknown> } {
  const load = { running: true, number: 0 }
  const work = async () => {
    while (load.running) {
      const number = load.number++
      await receive(stage, inbox, `<busy-${number}@sender.test>`, number % 3 ? 700 : largeBytes)
      await send(stage.api, inbox, [`busy-${number}@far.test`])
      const [oldest] = await inboundOf(stage.api, inbox)
      if (oldest && number % 2) await stage.api.call(`/v1/messages/${oldest.id}`, { method: 'DELETE' })
    }
  }
  const working = Promise.all([work(), work()])
  working.catch(() => {}) // met by who stops it
  const stop = () => {
    load.running = false
    return working
  }
  return { stop }
}

test('a backup killed half-way under load is made again, and restores all that was acknowledged', async (t) => {
  const stage = await setStage(t)
  const { posthorn, api, secret, folder } = stage
  const [kept, busy] = stage.inboxes as [Inbox, Inbox]
  for (let n = 0; n < 6; n++) await receive(stage, kept, `<kept-${n}@sender.test>`, n % 2 ? largeBytes : 900)
  const sent = await Promise.all([1, 2, 3].map((n) => send(api, kept, [`r${n}@far.test`])))
  const before = await filed(api, kept, 6)

  const load = workOn(stage, busy)
  const isHalfWay = () => countFiles(join(folder, 'tables')) > 20
  assert.ok(await killWhen(['backup', folder], posthorn.env, isHalfWay), 'it was over before its death')
  const unfinished = await verify(folder, posthorn.env)
  assert.deepEqual([unfinished.exitStatus, unfinished.status], [1, 'unfinished'])
  assert.ok(!existsSync(join(folder, 'manifest.json')))
  const env = await emptyPlace(t, posthorn)
  const refused = await command(['restore', folder], env)
  assert.deepEqual([refused.status, refused.stdout], [1, ''])
  assert.match(refused.stderr, /^posthorn: the backup was never finished: [^\n]+\n$/)

  const answer = await posthorn.cli<BackupAnswer>(['backup', folder])
  await load.stop()
  assert.ok(answer.blobs.count >= 3)
  assert.deepEqual(answer.blobs.missing, [])
  const { exitStatus, status, faults } = await verify(folder, posthorn.env)
  assert.deepEqual([exitStatus, status, faults], [0, 'ok', []])
  assert.equal(await posthorn.stop(), 0)

  const restored = await command(['restore', folder], env)
  assert.equal(restored.status, 0, restored.stderr)
  const copy = await startPosthorn(t, { env })
  const copied = new Api(() => copy.http, secret)
  for (const { message, source } of before) {
    assert.deepEqual(await sourceOf(copied, message), source)
    assert.deepEqual(await copied.want(`/v1/messages/${message.id}`), message)
  }
  for (const { submission, message } of sent) {
    const found = await copied.want<Message>(`/v1/messages/${message.id}`)
    assert.equal(found.internetMessageId, message.internetMessageId)
    assert.equal((await copied.call(`/v1/submissions/${submission.id}`)).status, 200)
  }
  // What came meanwhile is there whole, or not at all.
  for (const message of await inboundOf(copied, busy))
    assert.ok((await sourceOf(copied, message)).length > 700)
  assert.equal(await copy.stop(), 0)
})
