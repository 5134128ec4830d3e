// The contenders of outbound mail, each checked, before it is measured, to sign as it says.
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
  /** Hands `messages` in; resolves with when the first was sent and the last accepted, milliseconds since the epoch. */
  handIn(messages: number, load: Load): Promise<{ startedAtMs: number; endedAtMs: number }>
  /** Resolves when nothing is queued any more. */
  settle(): Promise<void>
}

/** Where mail goes. */
export interface Stage {
  /** For what is sent. */
  folder: string
  onward: number | 'mx'
  /** The resolver, where it is asked. */
  dns?: string
  sink: { host: string; port: number }
  recipients: readonly string[]
}

interface SmtpPeer extends Measured {
  port: number
  /** Resolves when nothing is queued any more. */
  idle(): Promise<void>
}

type Save<Saved> = (folder: string, recipients: readonly string[], mail: MailShape) => Saved

const peerDomain = 'sender.example'

/** Starts them one after the other, with a recorder where the sink will stand. */
export async function startRelays(scope: Scope, stage: Stage): Promise<Entrant<Relay>[]> {
  const key = makeSigningKey(peerDomain)
  const { onward, dns, folder } = stage
  const options = () => ({ onward, ...(dns !== undefined && { wrap: resolveBy(dns, folder) }) })
  const peer = (name: string, records: TxtRecords | null, start: () => Promise<SmtpPeer>) =>
    enter(name, async () => checked(relayBySmtp(stage, await start()), stage, records))
  return [
    await enter('Posthorn, RSA-signed', () => relayByPosthorn(scope, stage)),
    await peer('Postfix', null, () => startPostfix(scope, options())),
    await peer('Postfix + opendkim', key.records, async () =>
      startPostfix(scope, { ...options(), milters: await startSigningMilter(scope, key) }),
    ),
    await peer('Haraka', null, () => startHaraka(scope, options())),
    await peer('Haraka + dkim', key.records, () => startHaraka(scope, { ...options(), key })),
  ]
}

async function relayByPosthorn(scope: Scope, stage: Stage): Promise<Relay> {
  const { onward, dns } = stage
  const posthorn = await startPosthorn(scope, { onward, ...(dns && { dns: `${dns}:53` }) })
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

/** What DNS would have to say of the keys that it signs with. */
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

/** What is sent, made for its first load. */
function kept<Saved>({ folder, recipients }: Stage, save: Save<Saved>): (load: Load) => Saved {
  const known = new Map<string, Saved>()
  return ({ mail, destinations }) => {
    const name = JSON.stringify([mail, destinations])
    const saved = known.get(name) ?? save(folder, recipients.slice(0, destinations), mail)
    known.set(name, saved)
    return saved
  }
}

/** Throws unless the first message that leaves carries the signature that it should; `null`: none is asked for. */
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
