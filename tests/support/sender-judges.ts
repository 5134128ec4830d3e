// Independent verdicts on generated mails: pyspf, dkimpy, Mail::DKIM and mailauth, each over the same zone.
import { spawn, spawnSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fieldsOf } from './auth-results.ts'
import type { ZoneRecords } from './dns-server.ts'
import type { CaseZone, SenderCase } from './sender-cases/case-book.ts'

/** One judge's verdict on one mail, in its own words. Methods that it does not support are absent. */
export interface Said {
  /** A result of RFC 7208. */
  spf?: string
  /** For judges that return only pass or not. */
  spfPasses?: string
  /** One per signature, from the top. Null for what the judge does not support, such as Ed25519. */
  dkim?: (string | null)[]
  arc?: string | null
  dmarc?: string
  /** The domain's policy for mail that fails. */
  policy?: string
}

/** The number of signatures in the header. */
export function signatureCount(raw: Buffer): number {
  return fieldsOf(raw.toString('latin1'), 'DKIM-Signature').length
}

type AskAll = (cases: readonly SenderCase[], zone: CaseZone) => Promise<Said[]>

interface MailauthResult {
  spf: { status: { result: string } }
  dkim: { results: { selector?: string; status: { result: string } }[] }
  arc: { status: { result: string } } | false
  dmarc: { status: { result: string }; policy?: string } | false
}
const { authenticate } = createRequire(import.meta.url)('mailauth') as {
  authenticate: (message: Buffer, options: object) => Promise<MailauthResult>
}

export const askMailauth: AskAll = (cases, zone) =>
  Promise.all(
    cases.map(async ({ raw, ip, helo, from }) => {
      const options = {
        ip,
        helo,
        sender: from,
        mta: 'side.example',
        resolver: resolverOf(zone),
        strict: true,
      }
      const { spf, dkim, arc, dmarc } = await authenticate(raw, { ...options, disableBimi: true })
      const signatures = dkim.results.filter(({ status }) => status.result !== 'none')
      return {
        spf: spf.status.result,
        dkim: signatures.map(({ status }) => status.result),
        ...(arc && { arc: arc.status.result }),
        ...(dmarc && { dmarc: dmarc.status.result, ...(dmarc.policy && { policy: dmarc.policy }) }),
      }
    }),
  )

/** As `dns.promises.resolve` answers. */
function resolverOf({ records, failing }: CaseZone) {
  const fails = new Set(failing)
  const names = Object.keys(records)
  return async (asked: string, type: string): Promise<unknown[]> => {
    let name = asked.toLowerCase()
    for (let aliases = 0; aliases < 8; aliases++) {
      if (fails.has(name)) throw dnsError('ESERVFAIL')
      const found = records[name]
      if (!found) throw dnsError(names.some((known) => known.endsWith(`.${name}`)) ? 'ENODATA' : 'ENOTFOUND')
      if (found.CNAME === undefined) return valuesOf(found, type)
      name = found.CNAME.toLowerCase()
    }
    throw dnsError('ESERVFAIL')
  }
}

function valuesOf(found: ZoneRecords, type: string): unknown[] {
  const values: Record<string, unknown[]> = {
    TXT: inStrings(found),
    MX: (found.MX ?? []).map(([priority, exchange]) => ({ priority, exchange })),
  }
  const wanted = values[type] ?? (found[type as 'A'] as string[] | undefined) ?? []
  if (wanted.length === 0) throw dnsError('ENODATA')
  return wanted
}

function dnsError(code: string): Error {
  return Object.assign(new Error(code), { code })
}

function inStrings({ TXT = [] }: ZoneRecords): string[][] {
  return TXT.map((text) => (typeof text === 'string' ? (text.match(/.{1,255}/gs) ?? ['']) : text))
}

const probes: [string, string[], string][] = [
  ['/usr/bin/python3', ['-c', 'import dkim, nacl.signing, spf'], 'python3-dkim python3-nacl python3-spf'],
  ['perl', ['-MMail::DKIM::ARC::Verifier', '-e', ''], 'libmail-dkim-perl'],
]

/** The reason why not all judges can run here, or null. */
export function scriptsMissing(): string | null {
  const missing = probes.filter(([command, args]) => spawnSync(command, args).status !== 0)
  return missing.length === 0 ? null : `not installed: ${missing.map(([, , packages]) => packages).join(' ')}`
}

// Debian's Python has them as packages. Another Python earlier on the path may not.
export const askPython: AskAll = (cases, zone) =>
  askScript('/usr/bin/python3', 'sender-verdicts.py', cases, zone)
export const askPerl: AskAll = (cases, zone) => askScript('perl', 'sender-verdicts.pl', cases, zone)

function askScript(
  command: string,
  script: string,
  cases: readonly SenderCase[],
  zone: CaseZone,
): Promise<Said[]> {
  const texts = Object.entries(zone.records).map(([name, found]) => [
    name,
    { ...found, TXT: inStrings(found) },
  ])
  const mails = cases.map(({ raw, ip, helo, from }) => ({ raw: raw.toString('base64'), ip, helo, from }))
  const input = JSON.stringify({ zone: Object.fromEntries(texts), failing: zone.failing, mails })
  return new Promise((resolve, reject) => {
    const child = spawn(command, [join(import.meta.dirname, script)], { stdio: ['pipe', 'pipe', 'ignore'] })
    const pieces: Buffer[] = []
    child.stdout.on('data', (piece) => pieces.push(piece))
    child.once('error', reject).once('close', (status) => {
      if (status === 0) resolve(JSON.parse(Buffer.concat(pieces).toString()))
      else reject(new Error(`${script} ended with ${status}`))
    })
    child.stdin.end(input)
  })
}
