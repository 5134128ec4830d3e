// Credentials for S3: from variables, a file, or an endpoint of the machine, as Amazon's own tools find them.
import { readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { request } from 'undici'

export interface Credentials {
  accessKeyId: string
  secretAccessKey: string
  sessionToken: string | undefined
}

/** The usual variables. A value that is not set is null. */
export interface CredentialSettings {
  accessKeyId: string | null
  secretAccessKey: string | null
  sessionToken: string | null
  /** The file of credentials; null: `~/.aws/credentials`. */
  file: string | null
  profile: string | null
  /** The container's endpoint, which gives the credentials of its role. */
  containerUrl: string | null
  /** A file with the token that this endpoint requires. */
  containerTokenFile: string | null
  /** The instance's endpoint; null: the address that all instances have. */
  instanceUrl: string | null
}

type Found = Credentials & { expiresAtMs: number }

/** Renewed this long before they expire. */
const earlyMs = 5 * 60_000
const answerMs = 2_000
const maxAnswerBytes = 64 << 10
const instanceUrl = 'http://169.254.169.254'
const noCredentials =
  'no credentials for S3: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, write them into ~/.aws/credentials, or give this machine a role'

export class CredentialSource {
  readonly #settings: CredentialSettings
  #found: Promise<Found> | null = null

  constructor(settings: CredentialSettings) {
    this.#settings = settings
  }

  /** Returns the credentials. Asks their source once, and again before they expire. Rejects if there are none. */
  async current(): Promise<Credentials> {
    const finding = (this.#found ??= this.#find())
    const found = await finding
    if (found.expiresAtMs - earlyMs > Date.now()) return found
    // Calls at the same time ask once.
    if (this.#found === finding) this.forget()
    return await (this.#found ??= this.#find())
  }

  /** The source is asked again, because the store refused what it gave. */
  forget(): void {
    this.#found = null
  }

  async #find(): Promise<Found> {
    try {
      return await findCredentials(this.#settings)
    } catch (error) {
      // The next request asks again.
      this.forget()
      throw error
    }
  }
}

async function findCredentials(settings: CredentialSettings): Promise<Found> {
  const { accessKeyId, secretAccessKey, sessionToken, containerUrl } = settings
  if (accessKeyId && secretAccessKey)
    return {
      accessKeyId,
      secretAccessKey,
      sessionToken: sessionToken ?? undefined,
      expiresAtMs: Number.POSITIVE_INFINITY,
    }
  const filed = await readCredentialFile(settings)
  if (filed) return filed
  if (containerUrl) return await askContainer(containerUrl, settings.containerTokenFile)
  return await askInstance(settings.instanceUrl ?? instanceUrl)
}

/** Null if there is no such file, unless the operator named it. */
async function readCredentialFile({ file, profile }: CredentialSettings): Promise<Found | null> {
  const text = await readFile(file ?? join(homedir(), '.aws/credentials'), 'utf8').catch((error) => {
    if (error.code === 'ENOENT' && file === null) return ''
    throw new Error(`${file ?? '~/.aws/credentials'} cannot be read (${error.code})`)
  })
  const values = sectionOf(text, profile ?? 'default')
  const [accessKeyId, secretAccessKey] = [
    values.get('aws_access_key_id'),
    values.get('aws_secret_access_key'),
  ]
  if (accessKeyId && secretAccessKey)
    return {
      accessKeyId,
      secretAccessKey,
      sessionToken: values.get('aws_session_token'),
      // Read again every five minutes, because another program may replace the keys.
      expiresAtMs: Date.now() + 2 * earlyMs,
    }
  if (file === null && profile === null) return null
  throw new Error(`${file ?? '~/.aws/credentials'} has no keys for the profile ${profile ?? 'default'}`)
}

/** The values of one section of an INI file. */
function sectionOf(text: string, wanted: string): Map<string, string> {
  const values = new Map<string, string>()
  let section = ''
  for (const line of text.split(/\r?\n/)) {
    const [, name] = /^\s*\[([^\]]*)\]/.exec(line) ?? []
    if (name !== undefined) section = name.trim()
    const [, key, value] = /^\s*([a-z_]+)\s*=\s*(\S*)\s*$/.exec(line) ?? []
    if (section === wanted && key !== undefined) values.set(key, value!)
  }
  return values
}

async function askContainer(url: string, tokenFile: string | null): Promise<Found> {
  const authorization = tokenFile && (await readFile(tokenFile, 'utf8')).trim()
  const headers: Record<string, string> = authorization ? { authorization } : {}
  return parseFound(await ask(url, { headers }))
}

async function askInstance(base: string): Promise<Found> {
  try {
    // Version 2 of the instance's protocol needs a token, so that a page in a browser cannot ask.
    const lifetime = { 'x-aws-ec2-metadata-token-ttl-seconds': '21600' }
    const token = await ask(`${base}/latest/api/token`, { method: 'PUT', headers: lifetime })
    const headers = { 'x-aws-ec2-metadata-token': token }
    const roles = `${base}/latest/meta-data/iam/security-credentials/`
    const [role] = (await ask(roles, { headers })).split('\n')
    return parseFound(await ask(`${roles}${role!.trim()}`, { headers }))
  } catch {
    // This is no such instance, or it has no role.
    throw new Error(noCredentials)
  }
}

async function ask(
  url: string,
  options: { method?: 'GET' | 'PUT'; headers: Record<string, string> },
): Promise<string> {
  const { statusCode, body } = await request(url, { ...options, signal: AbortSignal.timeout(answerMs) })
  const pieces: Buffer[] = []
  let sizeBytes = 0
  for await (const piece of body) {
    sizeBytes += piece.length
    if (sizeBytes > maxAnswerBytes) throw new Error('the endpoint of credentials answers too much')
    pieces.push(piece)
  }
  if (statusCode !== 200) throw new Error(`the endpoint of credentials answered ${statusCode}`)
  return Buffer.concat(pieces).toString('utf8')
}

function parseFound(text: string): Found {
  const { AccessKeyId, SecretAccessKey, Token, Expiration } = JSON.parse(text)
  if (typeof AccessKeyId !== 'string' || typeof SecretAccessKey !== 'string') throw new Error(noCredentials)
  const expiresAtMs = Date.parse(Expiration)
  return {
    accessKeyId: AccessKeyId,
    secretAccessKey: SecretAccessKey,
    sessionToken: typeof Token === 'string' ? Token : undefined,
    expiresAtMs: Number.isNaN(expiresAtMs) ? Number.POSITIVE_INFINITY : expiresAtMs,
  }
}
