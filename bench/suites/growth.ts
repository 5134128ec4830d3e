// Growth: whether any operation becomes slower with a thousand times as many stored messages.

import type { Scope } from '../../tests/support/until.ts'
import { until } from '../../tests/support/until.ts'
import { saveSends, sendByHttp } from '../load/http.ts'
import { recipient, saveMails, sendBySmtp } from '../load/smtp.ts'
import { writeMails, writeUnsigned } from '../load/verified-mail.ts'
import { call, loadOf } from '../peers/posthorn.ts'
import { enter, type Plan, withCost } from '../plan.ts'
import { formatGrowth } from '../report.ts'
import { interleave, type Sample } from '../rounds.ts'
import { type Store, startStore, textBytes } from './growth-store.ts'

export async function benchGrowth(scope: Scope, plan: Plan): Promise<void> {
  const few = plan.extent === 'quick' ? 1_000 : 10_000
  const contenders = []
  for (const messages of [plan.messages ?? few * (plan.extent === 'quick' ? 10 : 1_000), few]) {
    const name = `${messages.toLocaleString('en')} messages`
    const startedMs = performance.now()
    const entrant = await enter(name, () => startStore(scope, messages))
    if (!('peer' in entrant)) return plan.print(`growth: ${name}: ${entrant.absence}\n`)
    plan.print(`${name}: filled in ${Math.round((performance.now() - startedMs) / 1000)} s`)
    contenders.push({ name, measure: measurer(entrant.peer, plan) })
  }
  const [many, base] = await interleave(contenders, plan.rounds)
  plan.print(formatGrowth('growth: latency and CPU, one client', many!, base!))
}

/** The operations that change the store come first, so that its work is done before the reads. */
function measurer(store: Store, plan: Plan): () => Promise<Sample> {
  const { folder } = store
  const bodies = saveSends(folder, { recipient: 'u@far.test', textBytes })
  const write = writeUnsigned('unsigned.example')
  const mails = saveMails(folder, writeMails(write, { textBytes, files: 'none' }, [recipient]), [recipient])
  const count = plan.extent === 'quick' ? 50 : 400
  return async () => {
    const sample: Sample = {}
    const note = (name: string, latencyMs: number, cpuUs: number) => {
      sample[`${name}${latency}`] = latencyMs
      sample[`${name}${cpu}`] = cpuUs
    }
    await store.posthorn.command('queue', 'pause', '@relay')
    const target = loadOf(store.posthorn)
    const accepted = await withCost(store, async () => {
      const paths = [`/v1/inboxes/${store.inboxId}/messages`]
      const load = { ...target, method: 'POST', paths, bodies, expectStatus: '202' } as const
      return { messages: count, result: await sendByHttp({ ...load, connections: 1, count }) }
    })
    note('accept a send', accepted.result.latencyMs.p50, accepted.cpuUs)

    const delivered = await withCost(store, async () => {
      // The deliveries begin while the command still runs, so only their CPU can be measured.
      await store.posthorn.command('queue', 'resume', '@relay')
      const isEmpty = async () => (await store.countWaiting()) === 0
      await until('the queue is empty', isEmpty, { timeoutMs: 120_000, everyMs: 10 })
      return { messages: count }
    })
    sample[`claim and deliver${cpu}`] = delivered.cpuUs
    const filed = await withCost(store, async () => {
      const before = await store.countFiled()
      const load = {
        ...mails,
        port: store.posthorn.smtpPort,
        sessions: 1,
        connections: 'kept',
        count,
      } as const
      const { latencyMs } = await sendBySmtp(load)
      const isFiled = async () => (await store.countFiled()) >= before + count
      await until('all mail is filed', isFiled, { timeoutMs: 120_000, everyMs: 10 })
      return { messages: count, latencyMs }
    })
    note('receive and file', filed.latencyMs.p50, filed.cpuUs)
    for (const [name, paths] of Object.entries(await readsOf(store))) {
      const read = await withCost(store, async () => {
        const load = { ...target, method: 'GET', connections: 1, count, expectStatus: '200', paths } as const
        return { messages: count, result: await sendByHttp(load) }
      })
      note(name, read.result.latencyMs.p50, read.cpuUs)
    }
    return sample
  }
}

/** The endings of the two figures of an operation. */
const [latency, cpu] = [', p50 ms', ', CPU µs'] as const

/** The paths of each read of the API that grows with mail. */
async function readsOf(store: Store): Promise<Record<string, string[]>> {
  const { inboxId, webhookId, picked, posthorn } = store
  const inbox = `/v1/inboxes/${inboxId}`
  const received = picked.filter(({ direction }) => direction === 'inbound')
  const sent = picked.filter(({ direction }) => direction === 'outbound')
  const times = picked.map(({ at }) => at.toISOString())
  const submissions = sent.map(({ submissionId }) => submissionId)
  const { messages, nextCursor } = await call<{ messages: { subject: string }[]; nextCursor: string }>(
    posthorn,
    {
      method: 'GET',
      path: `${inbox}/export?limit=50`,
    },
  )
  const rare = /r\d+/.exec(messages.at(-1)!.subject)![0]
  return {
    'read a message': picked.map(({ id }) => `/v1/messages/${id}`),
    'its headers': received.map(({ id }) => `/v1/messages/${id}/headers`),
    'its source': received.map(({ id }) => `/v1/messages/${id}/source`),
    'a thread': picked.map(({ threadId }) => `/v1/threads/${threadId}`),
    'a submission': submissions.map((id) => `/v1/submissions/${id}`),
    'its events': submissions.map((id) => `/v1/submissions/${id}/events`),
    'list messages': [`${inbox}/messages`],
    'messages until a time': times.map((at) => `${inbox}/messages?until=${at}`),
    'messages of a direction': [`${inbox}/messages?direction=outbound`],
    'messages of a sender': [`${inbox}/messages?from=accounts@unsigned.example`],
    'messages after one': picked.map(({ id }) => `${inbox}/messages?after=${id}`),
    'list threads': [`${inbox}/threads`],
    'list submissions': ['/v1/submissions'],
    'submissions until a time': times.map((at) => `/v1/submissions?until=${at}`),
    'submissions of a status': ['/v1/submissions?status=delivered'],
    'submissions of an inbox': [`/v1/submissions?inboxId=${inboxId}`],
    'submissions to an address': sent.map((_, index) => `/v1/submissions?recipient=u${index % 20}@far.test`),
    'list inboxes': ['/v1/inboxes'],
    'list suppressions': ['/v1/suppressions'],
    'a suppression': sent.map((_, index) => `/v1/suppressions?email=s${index}@far.test`),
    'list complaints': ['/v1/complaints'],
    'list webhook calls': [`/v1/webhooks/${webhookId}/deliveries`],
    'delivery metrics': ['/v1/metrics/delivery?hours=24'],
    'search a common word': [`${inbox}/messages?q=benchmark`],
    'search a word of every fortieth': [`${inbox}/messages?q=h8`],
    'search a rare word': [`${inbox}/messages?q=${rare}`],
    'search, two words': [`${inbox}/messages?q=benchmark%20h8`],
    'export, first page': [`${inbox}/export`],
    'export, second page': [`${inbox}/export?cursor=${encodeURIComponent(nextCursor)}`],
  }
}
