// Memory of whole process trees: at rest, after mail in both directions, and during a steady load.
import { setTimeout as pause } from 'node:timers/promises'
import type { Scope } from '../../tests/support/until.ts'
import { temporaryFolder } from '../children.ts'
import { type BenchDns, startDns } from '../load/dns.ts'
import { type HttpLoad, saveMailSends, sendByHttp } from '../load/http.ts'
import type { MailShape } from '../load/mail-content.ts'
import { repeat } from '../load/schedule.ts'
import { recipient, type SavedMails, type Sink, saveMails, sendBySmtp, startSink } from '../load/smtp.ts'
import { makeVerifiedSender, writeMails } from '../load/verified-mail.ts'
import { startHaraka } from '../peers/haraka.ts'
import { startPostfix } from '../peers/postfix.ts'
import { createInbox, loadOf, startPosthorn } from '../peers/posthorn.ts'
import { countInbox } from '../peers/posthorn-store.ts'
import { enter, type Plan } from '../plan.ts'
import { formatCase, formatCourse } from '../report.ts'
import { type Outcome, type Sample, spread } from '../rounds.ts'
import { memoryOf } from '../usage.ts'

interface Resident {
  /** The parts that are measured separately, each with the pids of its current programs. */
  parts: Record<string, () => number[]>
  /** Runs the load, inbound and (if it relays) outbound. Resolves when every mail has arrived. */
  work(messages: number): Promise<void>
}

/** A contender that also gets mail at a steady rate after the load. */
interface Enduring extends Resident {
  /** Takes mail in each direction at a quarter of the rates of `work`, for `durationMs`. */
  endure(durationMs: number): Promise<void>
}

const shape: MailShape = { textBytes: 5_000, files: 'some' }
const sessions = 10

export async function benchMemory(scope: Scope, plan: Plan): Promise<void> {
  const messages = plan.extent === 'quick' ? 200 : 20_000
  const folder = temporaryFolder(scope, 'memory')
  const sink = await startSink(scope, folder)
  const sender = makeVerifiedSender()
  const dns = await startDns(scope, sender.zone, 'example')
  const mails = saveMails(folder, writeMails(sender.write, shape, [recipient]), [recipient])
  const posthorn = await enter('Posthorn', () => startBoth(scope, { dns, sink }, mails, folder))
  const entrants = [
    posthorn,
    await enter('Postfix, receiving', () => receiveByPostfix(scope, mails)),
    await enter('Haraka, receiving', () => receiveByHaraka(scope, mails)),
  ]
  const outcomes: Outcome[] = []
  for (const entrant of entrants) {
    if ('peer' in entrant) outcomes.push(...(await observe(entrant.peer, entrant.name, messages)))
    else outcomes.push({ name: entrant.name, samples: [], absence: entrant.absence })
  }
  const title = `memory, before and after ${messages} messages of 5 KB and some files each way, MB, once`
  plan.print(formatCase(title, outcomes))
  // The steady load takes its rate from the load above.
  if ('peer' in posthorn && outcomes[0]!.samples.length > 0) await observeCourse(posthorn.peer, plan)
}

/** Shows whether memory grows under a steady load: compares the second half of the time with the first. */
async function observeCourse({ parts, endure }: Enduring, { soakMs, print }: Plan): Promise<void> {
  const course = Object.entries(parts).map(([part, pids]) => ({ part, pids, sizes: [] as number[] }))
  const over = new AbortController()
  const look = async () => {
    for (const { pids, sizes } of course) sizes.push(memoryOf(pids()).pssBytes / 1e6)
  }
  const watched = repeat(look, soakMs / 60, over.signal)
  try {
    await endure(soakMs)
  } finally {
    over.abort()
    await watched
  }
  print(`memory, ${soakMs / 60_000} minutes of mail each way, PSS in MB`)
  for (const { part, sizes } of course) {
    const half = sizes.length >> 1
    const [early, late] = [sizes.slice(0, half), sizes.slice(half)].map((some) => spread(some)?.median ?? 0)
    const [first, second] = [early!.toFixed(0), late!.toFixed(0)]
    print(`  ${part}: ${first} in the first half, ${second} in the second`)
    print(formatCourse(part, sizes, 'MB'))
  }
  print('')
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
      'RSS after': after.rssBytes / 1e6,
      'RSS at rest': before[index]!.rssBytes / 1e6,
      'PSS after': after.pssBytes / 1e6,
      'highest RSS': after.peakBytes / 1e6,
    }
    return { name: label, samples: [sample] }
  })
}

async function startBoth(
  scope: Scope,
  { dns, sink }: { dns: BenchDns; sink: Sink },
  mails: SavedMails,
  folder: string,
): Promise<Enduring> {
  const posthorn = await startPosthorn(scope, { dns: dns.address, onward: sink.port })
  const counter = await countInbox(scope, posthorn)
  const senderId = await createInbox(posthorn, 'sender')
  const inward = { ...mails, port: posthorn.smtpPort, sessions, connections: 'per-message' } as const
  const outward: HttpLoad = {
    ...loadOf(posthorn),
    method: 'POST',
    paths: [`/v1/inboxes/${senderId}/messages`],
    bodies: saveMailSends(folder, ['u@far.test'], shape),
    connections: sessions,
    expectStatus: '202',
  }
  const rates = { in: 0, out: 0 }
  const work = async (messages: number) => {
    const startedMs = Date.now()
    await sendBySmtp({ ...inward, count: messages })
    rates.in = (messages / ((await counter.reach(messages)) - startedMs)) * 1000
    const before = sink.count()
    const { startedAtMs } = await sendByHttp({ ...outward, count: messages })
    rates.out = (messages / ((await sink.reach(before + messages)) - startedAtMs)) * 1000
  }
  // A quarter of each rate, because inbound and outbound share the machine.
  const endure = async (durationMs: number) => {
    await Promise.all([
      sendBySmtp({ ...inward, durationMs, perSecond: rates.in / 4 }),
      sendByHttp({ ...outward, durationMs, perSecond: rates.out / 4 }),
    ])
  }
  return { parts: { service: posthorn.servicePids, PostgreSQL: posthorn.databasePids }, work, endure }
}

async function receiveByPostfix(scope: Scope, mails: SavedMails): Promise<Resident> {
  const postfix = await startPostfix(scope)
  const work = async (count: number) => {
    await sendBySmtp({ ...mails, port: postfix.port, count, sessions, connections: 'per-message' })
    await postfix.reach(count)
  }
  return { parts: { '': postfix.pids }, work }
}

async function receiveByHaraka(scope: Scope, mails: SavedMails): Promise<Resident> {
  const haraka = await startHaraka(scope)
  const work = async (count: number) => {
    await sendBySmtp({ ...mails, port: haraka.port, count, sessions, connections: 'per-message' })
  }
  return { parts: { '': haraka.pids }, work }
}
