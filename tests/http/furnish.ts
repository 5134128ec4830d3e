// Organizations with one of everything that the API shows, for tests that go over all operations.
import { newUuid, type OrganizationId, type SubmissionId } from '../../src/base/ids.ts'
import { silentLog } from '../../src/base/log.ts'
import { Scanner } from '../../src/flow/receiving/scan.ts'
import { Clamd } from '../../src/scan/clamd.ts'
import { fanOut } from '../../src/store/events/webhook-deliveries.ts'
import { insertComplaint } from '../../src/store/sending/complaints.ts'
import type { Acceptance, Inbox, Message, Submission } from '../support/api.ts'
import { fakeClamd, streamed } from '../support/clamd.ts'
import { proveDomain, registerDomain } from '../support/customer-domain.ts'
import { DnsServer } from '../support/dns-server.ts'
import { type Scope, until } from '../support/until.ts'
import { nextKey } from './sending.ts'
import { type Caller, type CallerOptions, type Stage, setStage } from './stage.ts'

export interface Furnisher {
  stage: Stage
  dns: DnsServer
  /** Creates an organization whose limits do not interfere. */
  createCaller(options?: CallerOptions): Promise<Caller>
  /** Creates an inbox with mail sent and received. One message has a clean attachment. */
  addInbox(caller: Caller, body?: object): Promise<FurnishedInbox>
  /** Adds a domain: the first method fully proved, the second just registered. */
  addProvedDomain(caller: Caller): Promise<string>
  addDomain(caller: Caller): Promise<string>
  /** Sends through a proved domain. */
  addSend(caller: Caller, domainId: string): Promise<string>
  /** Adds an endpoint with two deliveries and returns the id of the newer delivery. */
  addWebhook(caller: Caller): Promise<{ webhookId: string; deliveryId: string }>
  addDelivery(caller: Caller, webhookId: string): Promise<string>
  addComplaint(caller: Caller): Promise<void>
}

export interface FurnishedInbox {
  inboxId: string
  address: string
  /** The sent message starts the thread, and the received message answers it. */
  threadId: string
  sent: { messageId: string; submissionId: string; idempotencyKey: string }
  received: { messageId: string; attachmentId: string }
}

const mail = (subject: string, inReplyTo: string) => `From: Far Person <someone@far.test>
To: us@inbox.test
Subject: ${subject}
Message-ID: <${newUuid()}@far.test>
In-Reply-To: ${inReplyTo}
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary=b

--b
Content-Type: text/plain

New text
--b
Content-Type: text/csv; name=a.csv
Content-Disposition: attachment; filename=a.csv

1,2
--b--
`

const unlimited = {
  domains: 100_000,
  inboxes: 1_000_000,
  inboxesPerDomain: 1_000_000,
  webhookEndpoints: 100_000,
}

/** Sets up a stage with DNS and a scanner. */
export async function setFurnishedStage(scope: Scope): Promise<Furnisher> {
  const dns = await DnsServer.start()
  const stage = await setStage(scope, { dnsServer: dns.address })
  scope.after(() => dns.close())
  const scanAll = await startScanner(scope, stage)
  let domains = 0
  const nextDomain = () => `d${++domains}-${newUuid().slice(-6)}.example`
  const addDomain = async (caller: Caller) => (await registerDomain(caller.api, nextDomain())).id
  return {
    stage,
    dns,
    addDomain,
    createCaller: ({ limits, ...options } = {}) =>
      stage.createCaller({ ...options, limits: { ...unlimited, managedStarter: 1_000_000, ...limits } }),
    addInbox: (caller, body) => addInbox(stage, scanAll, caller, body),
    addProvedDomain: async ({ api }) =>
      (await proveDomain(api, dns, nextDomain(), ['outbound', 'inbound'])).id,
    addSend,
    addWebhook: (caller) => addWebhook(stage, caller),
    addDelivery: (caller, webhookId) => addDelivery(stage, caller, webhookId),
    addComplaint: (caller) => addComplaint(stage, caller),
  }
}

async function startScanner(scope: Scope, { db, clock, blobs, claims }: Stage): Promise<() => Promise<void>> {
  const clamd = new Clamd(
    await fakeClamd(scope, (socket, received) => {
      if (streamed(received)) socket.end('stream: OK\0')
    }),
  )
  const scanner = new Scanner({ db, clock, blobs, log: silentLog, clamd, claims: claims('scan') })
  return async () => {
    while (await scanner.scanNext());
  }
}

async function addInbox(
  stage: Stage,
  scanAll: () => Promise<void>,
  { api }: Caller,
  body: object = {},
): Promise<FurnishedInbox> {
  const inbox = await api.want<Inbox>('/v1/inboxes', { method: 'POST', body, status: 201 })
  const idempotencyKey = nextKey()
  const message = { to: [{ email: 'someone@far.test' }], subject: 'Hello', text: 'There' }
  const sent = await api.want<Acceptance>(`/v1/inboxes/${inbox.id}/messages`, {
    method: 'POST',
    body: message,
    idempotencyKey,
    status: 202,
  })
  await stage.receive(inbox.address, mail('Re: Hello', sent.message.internetMessageId))
  await scanAll()
  const [received] = (
    await api.want<{ messages: Message[] }>(`/v1/inboxes/${inbox.id}/messages?direction=inbound`)
  ).messages
  return {
    inboxId: inbox.id,
    address: inbox.address,
    threadId: sent.message.threadId,
    sent: { messageId: sent.message.id, submissionId: sent.submission.id, idempotencyKey },
    received: { messageId: received!.id, attachmentId: received!.attachments![0]!.id },
  }
}

async function addSend({ api }: Caller, domainId: string): Promise<string> {
  const { domain } = await api.want<{ domain: string }>(`/v1/domains/${domainId}`)
  const body = {
    from: { email: `a@${domain}` },
    to: [{ email: 'b@far.test' }],
    subject: 'Hello',
    text: 'There',
  }
  const call = { method: 'POST', body, idempotencyKey: nextKey(), status: 202 }
  return (await api.want<Submission>('/v1/send', call)).id
}

async function addWebhook(stage: Stage, caller: Caller): Promise<{ webhookId: string; deliveryId: string }> {
  const body = { url: 'https://app.example.com/hooks' }
  const call = { method: 'POST', body, status: 201 }
  const { id } = await caller.api.want<{ id: string }>('/v1/webhooks', call)
  await addDelivery(stage, caller, id)
  return { webhookId: id, deliveryId: await addDelivery(stage, caller, id) }
}

async function addDelivery({ db, clock }: Stage, { api }: Caller, webhookId: string): Promise<string> {
  const path = `/v1/webhooks/${webhookId}`
  const newest = async () =>
    (await api.want<{ deliveries: { id: string }[] }>(`${path}/deliveries?limit=1`)).deliveries[0]
  const before = await newest()
  await api.want(`${path}/test`, { method: 'POST', status: 202 })
  const delivery = await until('the delivery', async () => {
    await fanOut(db.writer, 2_000, clock.now())
    const now = await newest()
    return now && now.id !== before?.id ? now : null
  })
  return delivery.id
}

let complaints = 0

async function addComplaint({ db, clock }: Stage, { organizationId }: Caller): Promise<void> {
  const email = `complainer-${++complaints}@far.test`
  const row = {
    organizationId: organizationId as OrganizationId,
    submissionId: newUuid<SubmissionId>(),
    messageId: null,
    email,
    addressKey: email,
    feedbackType: 'abuse',
    userAgent: null,
    reportedBy: 'mx.far.test',
    arrivedAt: clock.now(),
  }
  await db.transaction((tx) => insertComplaint(tx, row, clock.now()))
}
