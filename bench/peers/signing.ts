// Signing of outgoing mail: the peers' key, Debian's opendkim, and the check that a contender really signs.
import { generateKeyPairSync } from 'node:crypto'
import { chmodSync, existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Scope } from '../../tests/support/until.ts'
import { lookupIn, type TxtRecords, verifyMail } from '../../tests/support/verify-mail.ts'
import { freePort, runChild, startChild, temporaryFolder, untilReady } from '../children.ts'
import { isListening } from '../load/smtp.ts'
import { treeOf } from '../usage.ts'
import type { Milters } from './milters.ts'

/** An RSA-2048 key of the domain whose mail the peers are handed. */
export interface SigningKey {
  domain: string
  selector: string
  /** PEM, PKCS #1, which all peers read. */
  privateKey: string
  records: TxtRecords
}

const opendkimPath = '/usr/sbin/opendkim'

/** The fields that peers sign: those that our service signs and their mails have. */
export const signedFields = [
  ...['From', 'To', 'Subject', 'Date', 'Message-ID', 'MIME-Version', 'Content-Type'],
  ...['Content-Transfer-Encoding', 'List-Unsubscribe'],
]

export function makeSigningKey(domain: string): SigningKey {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const key = publicKey.export({ type: 'spki', format: 'der' }).toString('base64')
  const selector = 'bench'
  return {
    domain,
    selector,
    privateKey: String(privateKey.export({ type: 'pkcs1', format: 'pem' })),
    records: { [`${selector}._domainkey.${domain}`]: [`v=DKIM1; k=rsa; p=${key}`] },
  }
}

/** Starts opendkim with Debian's settings to sign the mail that its Postfix accepts. */
export async function startSigningMilter(scope: Scope, key: SigningKey): Promise<Milters> {
  if (!existsSync(opendkimPath)) throw new Error('missing: opendkim, run bench/peers/install.sh')
  const folder = temporaryFolder(scope, 'opendkim')
  chmodSync(folder, 0o755)
  const files = {
    'key.pem': key.privateKey,
    'opendkim.conf': [
      ...['Mode s', `Domain ${key.domain}`, `Selector ${key.selector}`, `KeyFile ${folder}/key.pem`],
      ...['Canonicalization relaxed/relaxed', 'SignatureAlgorithm rsa-sha256', 'InternalHosts csl:127.0.0.1'],
      ...[`SignHeaders ${signedFields.join(',')}`, 'OversignHeaders From', 'RequireSafeKeys no', ''],
    ].join('\n'),
  }
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text, { mode: 0o600 })
  const port = await freePort()
  const words = ['-f', '-x', join(folder, 'opendkim.conf'), '-p', `inet:${port}@127.0.0.1`]
  const child = startChild(scope, folder, opendkimPath, words)
  await untilReady(child, 'opendkim listens', () => isListening(port))
  return { main: [`smtpd_milters = inet:127.0.0.1:${port}`], master: [], pids: () => treeOf(child.pid) }
}

/** Returns the installed version, or that it is missing. */
export async function opendkimVersion(): Promise<string> {
  if (!existsSync(opendkimPath)) return 'missing'
  return /v(\S+)/.exec(await runChild(opendkimPath, ['-V']))?.[1] ?? 'unknown'
}

/** Throws unless an outgoing mail carries an RSA signature that these records verify. */
export async function requireSignature(raw: Buffer, records: TxtRecords): Promise<void> {
  const { dkim } = await verifyMail(raw, lookupIn(records))
  if (dkim.some(({ result, algorithm }) => result === 'pass' && algorithm === 'rsa-sha256')) return
  const found = dkim.map(({ algorithm, result, reason }) => `${algorithm} ${result} (${reason})`)
  throw new Error(`what leaves has no RSA signature that can be verified: ${found.join(', ') || 'none'}`)
}
