// Sustained: mail at a fixed rate for a minute regardless of answers, below the service's capacity and above it.
import type { Scope } from '../../tests/support/until.ts'
import { temporaryFolder } from '../children.ts'
import { startDns } from '../load/dns.ts'
import { type HttpLoad, saveMailSends, sendByHttp } from '../load/http.ts'
import type { MailShape } from '../load/mail-content.ts'
import { latencyOf } from '../load/schedule.ts'
import {
  offerBySmtp,
  recipient,
  type SavedMails,
  type Sink,
  type SmtpRun,
  saveMails,
  startSink,
} from '../load/smtp.ts'
import { makeVerifiedSender, writeMails } from '../load/verified-mail.ts'
import { createInbox, loadOf, type Posthorn, startPosthorn } from '../peers/posthorn.ts'
import { countInbox, type InboxCounter } from '../peers/posthorn-store.ts'
import { probeRecipient, ReadingProbe } from '../peers/reading-probe.ts'
import { type SpoolState, type SpoolWatch, watchSpool } from '../peers/spool-watch.ts'
import { type Plan, wantsCase } from '../plan.ts'
import { formatCourse, formatFigures } from '../report.ts'
import type { Sample } from '../rounds.ts'

/** One service with all roles, and the mail for it. */
interface Stage {
  posthorn: Posthorn
  counter: InboxCounter
  spool: SpoolWatch
  probe: ReadingProbe
  mails: SavedMails
  sink: Sink
  sends: HttpLoad
}

interface Phase {
  name: string
  sample: Sample
  course: SpoolState[]
}

const shape: MailShape = { textBytes: 5_000, files: 'none' }
/** The number of connections of a load. */
const sessions = 100
const clients = 50
const shares = [0.75, 1.3]

export async function benchSustained(scope: Scope, plan: Plan): Promise<void> {
  const stage = await setStage(scope)
  if (wantsCase(plan, 'sustained, inbound, 5 KB')) await benchInbound(stage, plan)
  if (wantsCase(plan, 'sustained, outbound, 5 KB')) await benchOutbound(stage, plan)
}

async function setStage(scope: Scope): Promise<Stage> {
  const folder = temporaryFolder(scope, 'sustained')
  const sender = makeVerifiedSender()
  const dns = await startDns(scope, sender.zone, 'example')
  const sink = await startSink(scope, folder)
  const posthorn = await startPosthorn(scope, { dns: dns.address, onward: sink.port })
  const counter = await countInbox(scope, posthorn)
  const senderId = await createInbox(posthorn, 'sender')
  return {
    posthorn,
    counter,
    sink,
    spool: await watchSpool(scope, posthorn, counter.inboxId),
    probe: await ReadingProbe.start(posthorn, writeMails(sender.write, shape, [probeRecipient])),
    mails: saveMails(folder, writeMails(sender.write, shape, [recipient]), [recipient]),
    sends: {
      ...loadOf(posthorn),
      method: 'POST',
      paths: [`/v1/inboxes/${senderId}/messages`],
      bodies: saveMailSends(folder, ['u@far.test'], shape),
      connections: clients,
      expectStatus: '202',
    },
  }
}

async function benchInbound(stage: Stage, plan: Plan): Promise<void> {
  const top = plan.topRate ?? (await findTopInbound(stage, plan))
  const phases: Phase[] = []
  for (const share of shares) phases.push(await offerMail(stage, share * top, plan.sustainedMs))
  const length = `${plan.sustainedMs / 1000} s each`
  plan.print(
    formatFigures(
      `sustained, inbound, 5 KB, at ${shares.join(' and ')} of ${Math.round(top)}/s, ${length}`,
      phases,
    ),
  )
  for (const { name, course } of phases) {
    plan.print(
      formatCourse(
        `${name}: age of the oldest mail that is not filed`,
        course.map(({ oldestMs }) => oldestMs),
        'ms',
      ),
    )
    plan.print(formatCourse(`${name}: filed`, filedEachSecond(course), '/s'))
  }
  plan.print('')
}

/** Measures the mails filed per second during a burst over many connections, after a warm-up burst. */
async function findTopInbound({ posthorn, counter, mails }: Stage, { sustainedMs }: Plan): Promise<number> {
  const burst = { ...mails, ...inboundTo(posthorn), sessions: clients, durationMs: burstMs(sustainedMs) }
  const filedPerSecond = async () => {
    const { startedAtMs, accepted } = await offerBySmtp(burst)
    return (accepted / ((await counter.reach(accepted)) - startedAtMs)) * 1000
  }
  await filedPerSecond()
  return await filedPerSecond()
}

async function offerMail(stage: Stage, perSecond: number, durationMs: number): Promise<Phase> {
  const { posthorn, counter, spool, probe, mails } = stage
  const over = new AbortController()
  const following = spool.follow(over.signal)
  const probing = probe.run(over.signal)
  const load = { ...mails, ...inboundTo(posthorn), sessions, durationMs, perSecond }
  const before = await spool.look()
  const { startedAtMs, endedAtMs, ...offered } = await offerBySmtp(load)
  const after = await spool.look()
  over.abort()
  const filedAtMs = await counter.reach(offered.accepted)
  const [course, readable] = [await following, await probing]
  const oldest = latencyOf(course.map(({ oldestMs }) => oldestMs))
  const perSecondOf = (messages: number) => (messages / (endedAtMs - startedAtMs)) * 1000
  const sample = {
    'offered/s': perSecond,
    'accepted/s': perSecondOf(offered.accepted),
    'filed/s': perSecondOf(after.filed - before.filed),
    'refused, in all': offered.refused,
    '250 after it was due, p50, ms': offered.latencyMs.p50,
    '250 after it was due, p99, ms': offered.latencyMs.p99,
    'oldest not filed, p99, ms': oldest.p99,
    'oldest not filed, max, ms': Math.max(...course.map(({ oldestMs }) => oldestMs)),
    'from 250 to readable, p50, ms': readable.latencyMs.p50,
    'from 250 to readable, p99, ms': readable.latencyMs.p99,
    'all filed after the end, s': (filedAtMs - endedAtMs) / 1000,
  }
  return { name: `${Math.round(perSecond)}/s`, sample, course }
}

function inboundTo({ smtpPort }: Posthorn): Pick<SmtpRun, 'port' | 'connections'> {
  return { port: smtpPort, connections: 'per-message' }
}

/** Computes the mails filed per second from readings a quarter of a second apart. */
function filedEachSecond(course: readonly SpoolState[]): number[] {
  const eachSecond = course.filter((_, look) => look % 4 === 0)
  return eachSecond.slice(1).map(({ filed }, second) => filed - eachSecond[second]!.filed)
}

async function benchOutbound(stage: Stage, plan: Plan): Promise<void> {
  const top = plan.topRate ?? (await findTopOutbound(stage, plan))
  const perSecond = shares[0]! * top
  const { sink, sends } = stage
  const before = sink.count()
  const result = await sendByHttp({ ...sends, durationMs: plan.sustainedMs, perSecond })
  const seconds = (result.endedAtMs - result.startedAtMs) / 1000
  const delivered = sink.count() - before
  const reachedAtMs = await sink.reach(before + result.answered)
  const sample = {
    'offered/s': perSecond,
    'accepted/s': result.answered / seconds,
    'at the sink/s': delivered / seconds,
    'POST, p50, ms': result.latencyMs.p50,
    'POST, p99, ms': result.latencyMs.p99,
    'all at the sink after the end, s': (reachedAtMs - result.endedAtMs) / 1000,
  }
  const title = `sustained, outbound, 5 KB, at ${shares[0]} of ${Math.round(top)}/s, ${plan.sustainedMs / 1000} s`
  plan.print(`${formatFigures(title, [{ name: `${Math.round(perSecond)}/s`, sample }])}\n`)
}

/** Measures the mails per second at the sink during a burst over many connections, after a warm-up burst. */
async function findTopOutbound({ sink, sends }: Stage, { sustainedMs }: Plan): Promise<number> {
  const sunkPerSecond = async () => {
    const before = sink.count()
    const { startedAtMs, answered } = await sendByHttp({ ...sends, durationMs: burstMs(sustainedMs) })
    return (answered / ((await sink.reach(before + answered)) - startedAtMs)) * 1000
  }
  await sunkPerSecond()
  return await sunkPerSecond()
}

function burstMs(sustainedMs: number): number {
  return Math.min(10_000, sustainedMs / 3)
}
