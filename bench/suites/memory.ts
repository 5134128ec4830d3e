// Memory of whole program trees: at rest, and after mail has gone through in both directions.
import { setTimeout as pause } from 'node:timers/promises'
import type { Scope } from '../../tests/support/until.ts'
import { temporaryFolder } from '../children.ts'
import { sendBody, sendByHttp } from '../load/http.ts'
import { type Sink, sendBySmtp, startSink } from '../load/smtp.ts'
import { startHaraka } from '../peers/haraka.ts'
import { startPostfix } from '../peers/postfix.ts'
import { createInbox, loadOf, startPosthorn } from '../peers/posthorn.ts'
import { countInbox } from '../peers/posthorn-store.ts'
import { enter, type Plan } from '../plan.ts'
import { formatCase } from '../report.ts'
import type { Outcome, Sample } from '../rounds.ts'
import { memoryOf } from '../usage.ts'

interface Resident {
  /** The trees that are told apart, each with the programs it has now. */
  parts: Record<string, () => number[]>
  /** Takes the load, in and (where it relays) out, and resolves when all of it is where it belongs. */
  work(messages: number): Promise<void>
}

const sizeBytes = 5000
const sessions = 10

export async function benchMemory(scope: Scope, plan: Plan): Promise<void> {
  const messages = plan.extent === 'quick' ? 200 : 20_000
  const sink = await startSink(scope, temporaryFolder(scope, 'memory'))
  const entrants = [
    await enter('Posthorn', () => startBoth(scope, sink)),
    await enter('Postfix, receiving', () => receiveByPostfix(scope)),
    await enter('Haraka, receiving', () => receiveByHaraka(scope)),
  ]
  const outcomes: Outcome[] = []
  for (const entrant of entrants) {
    if ('peer' in entrant) outcomes.push(...(await observe(entrant.peer, entrant.name, messages)))
    else outcomes.push({ name: entrant.name, samples: [], absence: entrant.absence })
  }
  plan.print(formatCase(`memory, before and after ${messages} messages of 5 KB each way, MB, once`, outcomes))
}

async function observe(resident: Resident, name: string, messages: number): Promise<Outcome[]> {
  const parts = Object.entries(resident.parts)
  const labelled = parts.map(([part, pids]) => ({ label: part ? `${name}: ${part}` : name, pids }))
  const before = labelled.map(({ pids }) => memoryOf(pids()))
  try {
    await resident.work(messages)
  } catch (error) {
    return [{ name, samples: [], absence: `failed: ${(error as Error).message}` }]
  }
  await pause(1000)
  return labelled.map(({ label, pids }, index): Outcome => {
    const after = memoryOf(pids())
    const sample: Sample = {
      'RSS at rest': before[index]!.rssBytes / 1e6,
      'RSS after': after.rssBytes / 1e6,
      'PSS after': after.pssBytes / 1e6,
      'highest RSS': after.peakBytes / 1e6,
    }
    return { name: label, samples: [sample] }
  })
}

async function startBoth(scope: Scope, sink: Sink): Promise<Resident> {
  const posthorn = await startPosthorn(scope, { relayPort: sink.port })
  const counter = await countInbox(scope, posthorn)
  const senderId = await createInbox(posthorn, 'sender')
  const work = async (messages: number) => {
    await sendBySmtp({ port: posthorn.smtpPort, messages, sizeBytes, sessions, connections: 'per-message' })
    const before = sink.count()
    await sendByHttp({
      ...loadOf(posthorn),
      method: 'POST',
      paths: [`/v1/inboxes/${senderId}/messages`],
      body: sendBody('u@far.test', sizeBytes),
      connections: sessions,
      requests: messages,
      expectStatus: '202',
    })
    await sink.reach(before + messages)
    await counter.reach(messages)
  }
  return { parts: { service: posthorn.servicePids, PostgreSQL: posthorn.databasePids }, work }
}

async function receiveByPostfix(scope: Scope): Promise<Resident> {
  const postfix = await startPostfix(scope)
  const work = async (messages: number) => {
    await sendBySmtp({ port: postfix.port, messages, sizeBytes, sessions, connections: 'per-message' })
    await postfix.reach(messages)
  }
  return { parts: { '': postfix.pids }, work }
}

async function receiveByHaraka(scope: Scope): Promise<Resident> {
  const haraka = await startHaraka(scope)
  const work = async (messages: number) => {
    await sendBySmtp({ port: haraka.port, messages, sizeBytes, sessions, connections: 'per-message' })
  }
  return { parts: { '': haraka.pids }, work }
}
