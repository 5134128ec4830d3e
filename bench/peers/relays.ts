// The contenders of outbound mail, each checked before its measurement to sign as it claims.
import { startSink as startRecorder } from '../../tests/support/sink.ts'
import { type Scope, until } from '../../tests/support/until.ts'
import type { TxtRecords } from '../../tests/support/verify-mail.ts'
import { Endings } from '../children.ts'
import { saveMailSends, sendByHttp } from '../load/http.ts'
import type { MailShape } from '../load/mail-content.ts'
import { saveMails, sendBySmtp } from '../load/smtp.ts'
import { writeMails, writeUnsigned } from '../load/verified-mail.ts'
import { type Entrant, enter, type Measured } from '../plan.ts'
import { startHaraka } from './haraka.ts'
import { startPostfix } from './postfix.ts'
import { createInbox, loadOf, type Posthorn, startPosthorn } from './posthorn.ts'
import { measuredOf } from './posthorn-store.ts'
import { resolveBy } from './resolver.ts'
import { makeSigningKey, requireSignature, startSigningMilter } from './signing.ts'

export interface Load {
  mail: MailShape
  clients: number
  destinations: number
}

export interface Relay extends Measured {
  /** Hands in `messages`. Resolves with the first send and the last acceptance, in milliseconds since the epoch. */
  handIn(messages: number, load: Load): Promise<{ startedAtMs: number; endedAtMs: number }>
  /** Resolves when the queue is empty. */
  settle(): Promise<void>
}

/** The destination of the mail and the resources for it. */
export interface Stage {
  /** The folder of the load's files. */
  folder: string
  onward: number | 'mx'
  /** The resolver, if the contender asks one. */
  dns?: string
  sink: { host: string; port: number }
  recipients: readonly string[]
  /** The launcher of another version of Posthorn. */
  launcher?: string
}

interface SmtpPeer extends Measured {
  port: number
  /** Resolves when the queue is empty. */
  idle(): Promise<void>
}

type Save<Saved> = (folder: string, recipients: readonly string[], mail: MailShape) => Saved

const peerDomain = 'sender.example'

/** Starts the contenders one after the other. To check each one, a recorder listens on the sink's address. */
export async function startRelays(scope: Scope, stage: Stage): Promise<Entrant<Relay>[]> {
  const key = makeSigningKey(peerDomain)
  const { onward, dns, folder } = stage
  const launcher = process.env['BENCH_LAUNCHER']
  const options = () => ({ onward, ...(dns !== undefined && { wrap: resolveBy(dns, folder) }) })
  const peer = (name: string, records: TxtRecords | null, start: () => Promise<SmtpPeer>) =>
    enter(name, async () => checked(relayBySmtp(stage, await start()), stage, records))
  return [
    await enter('Posthorn, RSA-signed', () => relayByPosthorn(scope, stage)),
    ...(launcher
      ? [await enter('BENCH_LAUNCHER', () => relayByPosthorn(scope, { ...stage, launcher }))]
      : []),
    await peer('Postfix', null, () => startPostfix(scope, options())),
    await peer('Postfix + opendkim', key.records, async () =>
      startPostfix(scope, { ...options(), milters: await startSigningMilter(scope, key) }),
    ),
    await peer('Haraka', null, () => startHaraka(scope, options())),
    await peer('Haraka + dkim', key.records, () => startHaraka(scope, { ...options(), key })),
  ]
}

/** Starts the service and calls `prepare` before it has mail. */
export async function relayByPosthorn(
  scope: Scope,
  stage: Stage,
  prepare: (posthorn: Posthorn) => Promise<void> = async () => {},
): Promise<Relay> {
  const { onward, dns, launcher } = stage
  const posthorn = await startPosthorn(scope, {
    onward,
    ...(dns && { dns: `${dns}:53` }),
    ...(launcher && { launcher }),
  })
  await prepare(posthorn)
  const inboxId = await createInbox(posthorn, 'sender')
  const saved = kept(stage, saveMailSends)
  const relay: Relay = {
    ...(await measuredOf(scope, posthorn)),
    handIn: (count, load) =>
      sendByHttp({
        ...loadOf(posthorn),
        method: 'POST',
        paths: [`/v1/inboxes/${inboxId}/messages`],
        bodies: saved(load),
        connections: load.clients,
        count,
        expectStatus: '202',
      }),
    settle: async () => {},
  }
  return checked(relay, stage, await signingRecords(posthorn))
}

/** Returns the DNS records of the keys that the service signs with. */
async function signingRecords(posthorn: Posthorn): Promise<TxtRecords> {
  const { domain, keys } = await posthorn.command('dkim', 'show')
  const listed = (keys as { selector: string; zoneLine: string }[]).map(({ selector, zoneLine }) => {
    const strings = [...zoneLine.matchAll(/"([^"]*)"/g)].map(([, text]) => text)
    return [`${selector}._domainkey.${domain}`, [strings.join('')]]
  })
  return Object.fromEntries(listed)
}

function relayBySmtp(stage: Stage, peer: SmtpPeer): Relay {
  const save: Save<ReturnType<typeof saveMails>> = (folder, recipients, mail) =>
    saveMails(folder, writeMails(writeUnsigned(peerDomain), mail, recipients), recipients)
  const saved = kept(stage, save)
  return {
    pids: peer.pids,
    handIn: (count, load) =>
      sendBySmtp({ ...saved(load), port: peer.port, count, sessions: load.clients, connections: 'kept' }),
    settle: peer.idle,
  }
}

/** Returns a function that writes the mails at their first use and keeps them. */
function kept<Saved>({ folder, recipients }: Stage, save: Save<Saved>): (load: Load) => Saved {
  const known = new Map<string, Saved>()
  return ({ mail, destinations }) => {
    const name = JSON.stringify([mail, destinations])
    const saved = known.get(name) ?? save(folder, recipients.slice(0, destinations), mail)
    known.set(name, saved)
    return saved
  }
}

/** Throws unless the first outgoing message carries the expected signature. `null` requires none. */
async function checked(relay: Relay, { sink }: Stage, records: TxtRecords | null): Promise<Relay> {
  const scope = new Endings()
  try {
    const recorder = await startRecorder(scope, sink)
    await relay.handIn(1, { mail: { textBytes: 5_000, files: 'none' }, clients: 1, destinations: 1 })
    const copy = await until('a first message leaves', () => recorder.copies[0])
    if (records !== null) await requireSignature(copy.raw, records)
    await relay.settle()
    return relay
  } finally {
    await scope.run()
  }
}
