// Inbound, durable: how fast mail is acknowledged once it is on disk and verified, and how fast it becomes readable.
import type { Scope } from '../../tests/support/until.ts'
import { temporaryFolder } from '../children.ts'
import { type BenchDns, startDns } from '../load/dns.ts'
import { type MailShape, nameOf } from '../load/mail-content.ts'
import { recipient, type SavedMails, type SmtpRun, saveMails, sendBySmtp } from '../load/smtp.ts'
import {
  makeVerifiedSender,
  type PreparedMail,
  type WriteMail,
  writeMails,
  writeUnsigned,
} from '../load/verified-mail.ts'
import { startHaraka } from '../peers/haraka.ts'
import { startMilters } from '../peers/milters.ts'
import { type Postfix, startPostfix } from '../peers/postfix.ts'
import { startPosthorn } from '../peers/posthorn.ts'
import { countInbox, measuredOf } from '../peers/posthorn-store.ts'
import { type Entrant, enter, type Measured, type Plan, runCase, wantsCase, withCost } from '../plan.ts'
import { LoadSize, type Sample } from '../rounds.ts'
import { benchHiddenText } from './hidden-text.ts'
import { benchVerdicts } from './verdicts.ts'

export interface Shape {
  mail: MailShape
  sessions: number
  connections: SmtpRun['connections']
}

export interface Receiver extends Measured {
  port: number
  /** The mails that the receiver is sent. */
  mails(shape: MailShape): SavedMails
  /** Resolves with the time (ms since the epoch) at which `messages` of this load were readable. Null: it has no mailbox. */
  filed(messages: number): Promise<number | null>
  /** Checks the filed mail, waits until the receiver is idle, and cleans up. */
  settle(): Promise<void>
}

export interface Stage {
  dns: BenchDns
  /** Mails of a sender that can be verified, and of one about which DNS has no records. */
  verified: Mails
  plain: Mails
}

interface Mails {
  /** One mail. */
  write(): PreparedMail
  /** Writes many mails to one file. */
  save(shape: MailShape): SavedMails
}

export const usual: MailShape = { textBytes: 5_000, files: 'none' }
const allPass = 'spf=pass dkim=pass dmarc=pass'

export async function benchInbound(scope: Scope, plan: Plan): Promise<void> {
  const wanted = shapes(plan).filter((shape) => wantsCase(plan, titleOf(shape)))
  const stage = await setStage(scope)
  if (wanted.length > 0) await benchReceivers(scope, plan, stage, wanted)
  const mails = { signed: stage.verified.write(), unsigned: stage.plain.write() }
  await benchVerdicts(plan, mails, stage.dns.address)
  await benchHiddenText(plan)
}

async function benchReceivers(scope: Scope, plan: Plan, stage: Stage, wanted: Shape[]): Promise<void> {
  const posthorn = await enter('Posthorn', () => receivePosthorn(scope, stage))
  const bare = await enter('Postfix', () => receivePostfix(scope, stage))
  const others = [
    await enter('Postfix + milters', () => receiveVerifyingPostfix(scope, stage)),
    await enter('Haraka + fsync', () => receiveHaraka(scope, stage)),
  ]
  for (const entrant of [posthorn, bare, ...others]) if ('peer' in entrant) await warm(entrant.peer, plan)
  for (const shape of wanted) {
    // Not directly after the signed case of the same service, whose deferred work would fall into this turn.
    const plain = shape.mail.textBytes === usual.textBytes ? [withPlainMail(posthorn, stage)] : []
    await runCase(plan, titleOf(shape), [posthorn, bare, ...plain, ...others], (receiver) => {
      const size = new LoadSize({ first: 200, targetMs: plan.targetMs, max: 40_000 })
      return () => measure(receiver, shape, size)
    })
  }
}

export async function setStage(scope: Scope): Promise<Stage> {
  const sender = makeVerifiedSender()
  const folder = temporaryFolder(scope, 'mail')
  return {
    dns: await startDns(scope, sender.zone, 'example'),
    verified: keepMails(folder, sender.write),
    plain: keepMails(folder, writeUnsigned('unsigned.example')),
  }
}

function keepMails(folder: string, write: WriteMail): Mails {
  const saved = new Map<string, SavedMails>()
  const save = (shape: MailShape) => {
    const mails =
      saved.get(nameOf(shape)) ?? saveMails(folder, writeMails(write, shape, [recipient]), [recipient])
    saved.set(nameOf(shape), mails)
    return mails
  }
  return { write: () => write(recipient, 0, usual), save }
}

export async function measure(receiver: Receiver, shape: Shape, size: LoadSize): Promise<Sample> {
  const messages = size.count
  const { mail, sessions, connections } = shape
  const mails = receiver.mails(mail)
  const result = await withCost(receiver, async () => {
    const load = { ...mails, sessions, connections, count: messages, port: receiver.port }
    const { startedAtMs, endedAtMs } = await sendBySmtp(load)
    const filedAtMs = await receiver.filed(messages)
    const filedMs = filedAtMs === null ? null : filedAtMs - startedAtMs
    return { messages, elapsedMs: endedAtMs - startedAtMs, filedMs }
  })
  size.observe(result.elapsedMs)
  await receiver.settle()
  return {
    'CPU µs/message': result.loadCpuUs,
    'CPU µs until quiet': result.cpuUs,
    'accepted/s': (messages / result.elapsedMs) * 1000,
    ...(result.filedMs === null ? {} : { 'filed/s': (messages / result.filedMs) * 1000 }),
    ...result.wal,
  }
}

export async function receivePosthorn(scope: Scope, { dns, verified, plain }: Stage): Promise<Receiver> {
  const posthorn = await startPosthorn(scope, { dns: dns.address })
  const counter = await countInbox(scope, posthorn)
  const receiver: Receiver = {
    ...(await measuredOf(scope, posthorn)),
    port: posthorn.smtpPort,
    mails: verified.save,
    filed: counter.reach,
    settle: counter.verify,
  }
  await sendOne(receiver)
  await sendOne({ ...receiver, mails: plain.save })
  const found = await counter.authentication()
  if (found.join() !== [allPass, 'spf=none dkim=none dmarc=none'].join())
    throw new Error(`its verdicts are ${found.join(' and ')}`)
  return receiver
}

/** The same service with mail for which there is nothing to verify. The difference is the cost of verification. */
function withPlainMail(posthorn: Entrant<Receiver>, { plain }: Stage): Entrant<Receiver> {
  const name = `${posthorn.name}, unsigned`
  if ('absence' in posthorn) return { ...posthorn, name }
  return { name, peer: { ...posthorn.peer, mails: plain.save } }
}

async function receivePostfix(scope: Scope, stage: Stage): Promise<Receiver> {
  return await receiveBy(await startPostfix(scope), stage, null)
}

async function receiveVerifyingPostfix(scope: Scope, stage: Stage): Promise<Receiver> {
  if (stage.dns.host === null) throw new Error('missing: the milters ask port 53, which only root can have')
  const milters = await startMilters(scope, stage.dns.host)
  return await receiveBy(await startPostfix(scope, { milters, wrap: milters.wrap }), stage, allPass)
}

/** `expected`: the verdicts that Postfix must report on a received mail, or null if it reports none. */
async function receiveBy(postfix: Postfix, stage: Stage, expected: string | null): Promise<Receiver> {
  const receiver: Receiver = {
    port: postfix.port,
    pids: postfix.pids,
    mails: stage.verified.save,
    filed: async (messages) => {
      await postfix.reach(messages)
      return Date.now()
    },
    settle: async () => {
      await postfix.idle()
      postfix.clear()
    },
  }
  await sendOne(receiver)
  const found = reportedResults(postfix.read())
  if (found !== (expected ?? '')) throw new Error(`its verdicts are ${found || 'none'}`)
  await receiver.settle()
  return receiver
}

/** Returns the results in a message's Authentication-Results, in our order. */
function reportedResults(message: string): string {
  const [header = ''] = message.split('\n\n')
  const fields = header.split(/\n(?![ \t])/).filter((field) => field.startsWith('Authentication-Results:'))
  const found = ['spf', 'dkim', 'dmarc'].flatMap(
    (method) => fields.join(' ').match(new RegExp(`\\b${method}=\\w+`))?.[0] ?? [],
  )
  return found.join(' ')
}

async function receiveHaraka(scope: Scope, stage: Stage): Promise<Receiver> {
  const haraka = await startHaraka(scope)
  return {
    port: haraka.port,
    pids: haraka.pids,
    mails: stage.verified.save,
    filed: async () => null,
    settle: async () => haraka.clear(),
  }
}

async function sendOne(receiver: Receiver): Promise<void> {
  await sendSome(receiver, { sessions: 1, count: 1 })
}

/** A program that has just started still compiles its code. After this many mails, or measurements, its speed is stable. */
const warmUp = { messages: 3_000, rounds: 10 }

export async function warm(receiver: Receiver, { targetMs }: Plan): Promise<void> {
  const untilMs = performance.now() + warmUp.rounds * targetMs
  for (let sent = 0; sent < warmUp.messages && performance.now() < untilMs; sent += 200) {
    await sendSome(receiver, { sessions: 10, count: 200 })
    await receiver.settle()
  }
}

async function sendSome(
  { port, mails, filed }: Receiver,
  load: { sessions: number; count: number },
): Promise<void> {
  await sendBySmtp({ ...mails(usual), ...load, port, connections: 'per-message' })
  await filed(load.count)
}

function shapes(plan: Plan): Shape[] {
  const shape = (mail: MailShape, sessions: number): Shape => ({ mail, sessions, connections: 'per-message' })
  if (plan.extent === 'quick' && plan.caseName === null) return [shape(usual, 10)]
  return [
    ...[10, 1, 50].map((sessions) => shape(usual, sessions)),
    { ...shape(usual, 10), connections: 'kept' },
    ...[10, 50].map((sessions) => shape({ ...usual, files: 'some' }, sessions)),
    ...[10, 1, 50].map((sessions) => shape({ ...usual, textBytes: 100_000 }, sessions)),
  ]
}

function titleOf({ mail, sessions, connections }: Shape): string {
  const reuse = connections === 'kept' ? 'connections kept' : 'one message per connection'
  return `inbound, ${nameOf(mail)}, ${sessions} session${sessions > 1 ? 's' : ''}, ${reuse}`
}
