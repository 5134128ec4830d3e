// Mail servers of other makers as receivers, each at an address without TLS and at another one with STARTTLS.
import { accessSync, chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { harakaVersions, startHaraka } from '../../bench/peers/haraka.ts'
import type { Identity } from '../support/certificates.ts'
import type { Sink } from '../support/sink.ts'
import type { Scope } from '../support/until.ts'
import { findExim, startExim } from './exim.ts'
import { startOpensmtpd } from './opensmtpd.ts'
import { postfixMissing, startPostfix } from './postfix.ts'
import { smtpSinkPath, startSmtpSink } from './smtp-sink.ts'
import { unpack } from './unpack.ts'

export interface Stage {
  /** The port of every listener. */
  port: number
  /** The certificate chain of the listeners with TLS. */
  identity: Identity
  /** More listeners of Postfix, with other chains. */
  others: { host: string; identity: Identity }[]
  /** The servers relay all mail to it. */
  onward: Sink
}

/** A mail that a receiver accepted. */
interface Received {
  recipient: string
  /** By the protocol that the receiver itself noted. */
  isEncrypted: boolean
  raw: Buffer
}

export interface Receiver {
  name: string
  /** Why it cannot run here, or null. */
  missing: string | null
  /** `secure`: null if it has no TLS. */
  hosts: { plain: string; secure: string | null }
  /** Starts it. Returns the function that lists what it accepted. */
  start(scope: Scope, stage: Stage): Promise<() => Received[]>
}

const [exim, opensmtpd] = [findExim(), unpack('opensmtpd')]
const folderOf = (unpacked: typeof exim) => ('folder' in unpacked ? unpacked.folder : '')
const absenceOf = (unpacked: typeof exim) => ('missing' in unpacked ? unpacked.missing : null)

function hostsOf(number: number): { plain: string; secure: string } {
  return { plain: `127.0.1.${number}`, secure: `127.0.1.${number + 1}` }
}

export const receivers: Receiver[] = [
  {
    name: 'postfix',
    missing: postfixMissing(),
    hosts: hostsOf(1),
    start: async (scope, stage) => {
      await startSecuredPostfix(scope, stage)
      return () => relayedBy(stage.onward)
    },
  },
  {
    name: 'exim',
    missing: absenceOf(exim),
    hosts: hostsOf(3),
    start: async (scope, stage) => {
      await startSecuredExim(scope, stage)
      return () => relayedBy(stage.onward)
    },
  },
  {
    name: 'opensmtpd',
    missing: process.getuid?.() === 0 ? absenceOf(opensmtpd) : 'OpenSMTPD starts only as root',
    hosts: hostsOf(5),
    start: async (scope, stage) => {
      await startOpensmtpd(scope, folderOf(opensmtpd), hostsOf(5), stage)
      return () => relayedBy(stage.onward)
    },
  },
  {
    name: 'haraka',
    missing: harakaVersions().Haraka === 'missing' ? 'Haraka is not there (bench/peers/install.sh)' : null,
    hosts: hostsOf(7),
    start: async (scope, { port, identity, onward }) => {
      const { plain: plainHost, secure: secureHost } = hostsOf(7)
      await startHaraka(scope, { onward: onward.port, secured: { plainHost, secureHost, port, ...identity } })
      return () => relayedBy(onward)
    },
  },
  {
    name: 'smtp-sink',
    missing: sinkMissing(),
    hosts: { plain: hostsOf(9).plain, secure: null },
    start: async (scope, { port }) => {
      const { dumps } = await startSmtpSink(scope, { host: hostsOf(9).plain, port })
      return () => dumps().map(readDump)
    },
  },
]

function sinkMissing(): string | null {
  try {
    accessSync(smtpSinkPath)
    return null
  } catch {
    // Not installed.
    return 'smtp-sink is not installed (apt-get install postfix)'
  }
}

/** RFC 3848: the protocol of a mail that came within TLS is ESMTPS. The server's own fields are above ours. */
function relayedBy(onward: Sink): Received[] {
  return onward.copies.map(({ recipient, raw }) => {
    const [trace = ''] = raw.toString('latin1').split(/^Received: by \S+ \(Posthorn\)/m, 1)
    return { recipient, raw, isEncrypted: /\swith ESMTPS\s/i.test(trace) }
  })
}

function readDump(raw: Buffer): Received {
  const text = raw.toString('latin1')
  return {
    recipient: /^X-Rcpt-Args: <([^>]*)>/m.exec(text)?.[1] ?? '',
    isEncrypted: !/^X-Client-Proto: E?SMTP$/m.test(text),
    raw,
  }
}

async function startSecuredPostfix(scope: Scope, { port, identity, others, onward }: Stage): Promise<void> {
  const { plain, secure } = hostsOf(1)
  const files = filesOf(scope, 0o600)
  const secured = [{ host: secure, identity }, ...others].map(({ host, identity: { key, cert } }) => {
    const chain = files(`${host}.pem`, key + cert)
    return `${host}:${port} inet n - n - - smtpd -o smtpd_tls_security_level=may -o smtpd_tls_chain_files=${chain}\n`
  })
  const services = `${plain}:${port} inet n - n - - smtpd\n${secured.join('')}`
  await startPostfix(scope, onward, { services })
}

async function startSecuredExim(scope: Scope, { port, identity, onward }: Stage): Promise<void> {
  const { plain, secure } = hostsOf(3)
  const files = filesOf(scope, 0o644)
  const tls = `tls_advertise_hosts = \${if eq{$received_ip_address}{${secure}}{*}{}}
tls_certificate = ${files('cert.pem', identity.cert)}
tls_privatekey = ${files('key.pem', identity.key)}`
  const listeners = [plain, secure].map((host) => `[${host}]:${port}`)
  await startExim(scope, folderOf(exim), onward, { listeners, tls })
}

/** Returns a function that writes a file into a folder of the scope and returns its path. */
function filesOf(scope: Scope, mode: number): (name: string, text: string) => string {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-receiver-'))
  chmodSync(folder, 0o755)
  scope.after(() => rmSync(folder, { recursive: true, force: true }))
  return (name, text) => {
    writeFileSync(join(folder, name), text, { mode })
    return join(folder, name)
  }
}
