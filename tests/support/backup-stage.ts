// A service with data of every kind, whose mail goes to a sink and whose events go to a receiver.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import type { Api, Inbox, Message } from './api.ts'
import { heavyMail, passphrase, temporaryFolder } from './backup.ts'
import { createCaller, type Posthorn, startPosthorn } from './service.ts'
import { type Sink, startSink } from './sink.ts'
import { sendMail } from './smtp-sender.ts'
import { type Scope, until } from './until.ts'
import { startReceiver, type WebhookReceiver } from './webhook-receiver.ts'

export interface BackupStage {
  posthorn: Posthorn
  api: Api
  secret: string
  inboxes: [Inbox, Inbox]
  sink: Sink
  receiver: WebhookReceiver
  /** The folder for the backup. */
  folder: string
}

/** More than a row holds. */
export const largeBytes = 600_000

export async function setBackupStage(scope: Scope): Promise<BackupStage> {
  const [sink, receiver] = [await startSink(scope), await startReceiver(scope)]
  const posthorn = await startPosthorn(scope, {
    env: {
      ...passphrase,
      POSTHORN_DELIVERY: 'relay',
      POSTHORN_RELAY_URL: sink.url,
      POSTHORN_ALLOW_PRIVATE_NETWORKS: 'true',
      POSTHORN_RETRY_SCHEDULE: '1s',
      POSTHORN_WEBHOOK_RETRY_SCHEDULE: Array(20).fill('2s').join(),
    },
  })
  const { api, secret } = await createCaller(posthorn)
  const inboxes: [Inbox, Inbox] = [await api.createInbox(), await api.createInbox()]
  return { posthorn, api, secret, inboxes, sink, receiver, folder: join(temporaryFolder(scope), 'backup') }
}

/** Sends one mail from outside. Resolves once it is acknowledged. */
export async function receiveMail(
  posthorn: Posthorn,
  inbox: Inbox,
  id: string,
  bytes: number,
): Promise<void> {
  const raw = heavyMail(inbox.address, id, bytes)
  const { outcome, reply } = await sendMail(posthorn.smtp, { from: 's@sender.test', to: inbox.address, raw })
  assert.equal(outcome, 'accepted', reply)
}

export async function inboundOf(api: Api, inbox: Inbox): Promise<Message[]> {
  return (await api.exported(inbox.id)).filter(({ direction }) => direction === 'inbound')
}

export const sourceOf = (api: Api, { id }: Message): Promise<Buffer> => api.bytes(`/v1/messages/${id}/source`)

/** Waits until that many messages are filed and scanned, by default for 30 s. Returns each with its source. */
export async function filedIn(
  api: Api,
  inbox: Inbox,
  count: number,
  limits: { timeoutMs?: number } = {},
): Promise<{ message: Message; source: Buffer }[]> {
  const isScanned = ({ attachments = [] }: Message) =>
    attachments.every(({ scanState }) => scanState !== 'unscanned')
  const isFiled = async () => {
    const found = await inboundOf(api, inbox)
    return found.length >= count && found.every(isScanned) ? found : null
  }
  const messages = await until('the mail to be filed and scanned', isFiled, limits)
  return await Promise.all(
    messages.map(async (message) => ({ message, source: await sourceOf(api, message) })),
  )
}
