// Signed calls to S3: with time limits, and repeated until a deadline if the store may answer differently.
import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import { AwsV4Signer } from 'aws4fetch'
import { Agent, type Dispatcher } from 'undici'
import { backoffMs } from '../../base/backoff.ts'
import { NotOurStore } from '../blobs.ts'
import type { CredentialSource } from './credentials.ts'
import { nameOf, type S3Address, urlOf } from './s3-address.ts'
import { ofTransport, S3Fault, toFault } from './s3-fault.ts'

/** The body of a call. `open` is called once for each attempt. */
export interface S3Body {
  sizeBytes: number
  /** The SHA-256 of all bytes, as hexadecimal digits. */
  sha256: string
  open(): Buffer | AsyncIterable<Buffer>
}

export interface S3Call {
  method: 'DELETE' | 'GET' | 'HEAD' | 'POST' | 'PUT'
  /** The object, without the prefix; empty for the bucket. */
  key: string
  query?: Record<string, string>
  headers?: Record<string, string>
  body?: S3Body
  /** Statuses, besides those of success, that are returned. Any other throws. */
  may?: readonly number[]
  /** No attempt begins later than this after the first one, plus the time for the bytes of the body. */
  patienceMs?: number
}

export interface S3Answer {
  status: number
  headers: Record<string, string>
  text: string
}

/** An answer whose body is not read yet. */
export interface S3Opened {
  status: number
  headers: Record<string, string>
  body: Readable
}

export interface S3ClientOptions {
  address: S3Address
  credentials: Pick<CredentialSource, 'current' | 'forget'>
  patienceMs?: number
  /** Time without a byte of progress after which an attempt has failed. */
  idleMs?: number
}

const retryMs = [100, 200, 400, 800, 1_600]
/** An attempt may take this long. For the bytes of a body, this and the patience are longer, by the slowest useful rate. */
const attemptMs = 15_000
const slowestBytesPerMs = 256
const connectMs = 5_000
const maxConnections = 64
/** A page of a listing has 1,000 entries of up to 1 KiB. */
const maxAnswerBytes = 4 << 20
const emptySha256 = createHash('sha256').digest('hex')

export class S3Client {
  /** The store's name for operators. */
  readonly location: string
  /** Precedes all keys of this client in the bucket. */
  readonly prefix: string
  readonly #address: S3Address
  readonly #credentials: S3ClientOptions['credentials']
  readonly #patienceMs: number
  readonly #agent: Agent
  /** Signing keys, one for each day and secret. */
  readonly #signingKeys = new Map<string, ArrayBuffer>()

  constructor({ address, credentials, patienceMs = 30_000, idleMs = 10_000 }: S3ClientOptions) {
    this.location = nameOf(address)
    this.prefix = address.prefix
    this.#address = address
    this.#credentials = credentials
    this.#patienceMs = patienceMs
    this.#agent = new Agent({
      allowH2: false,
      connections: maxConnections,
      connect: { timeout: connectMs },
      headersTimeout: idleMs,
      bodyTimeout: idleMs,
    })
  }

  /**
   * Makes the call and returns its whole answer. Throws `NotOurStore` if the store refuses it, or has not answered when the
   * time is over. A call may have reached the store several times.
   */
  async send(call: S3Call): Promise<S3Answer> {
    return await this.#repeat(call, async ({ status, headers, body }) => {
      const text = await readText(body)
      // QUIRK: S3 may answer 200 to a completed upload, and then send an error in the body.
      if (status === 200 && text.includes('<Error>')) throw toFault(status, text)
      return { status, headers, text }
    })
  }

  /** Makes the call and returns its answer once its header has arrived. The caller reads or destroys the body. */
  async open(call: S3Call): Promise<S3Opened> {
    return await this.#repeat(call, async (opened) => opened)
  }

  async #repeat<Found>(call: S3Call, use: (opened: S3Opened) => Promise<Found>): Promise<Found> {
    const untilMs =
      performance.now() + Math.min(call.patienceMs ?? this.#patienceMs, this.#patienceMs) + transferMs(call)
    for (let failures = 1; ; failures++) {
      try {
        return await use(await this.#attempt(call))
      } catch (error) {
        const fault = error instanceof S3Fault ? error : ofTransport(error)
        if (fault.isForCredentials) this.#credentials.forget()
        const waitMs = backoffMs(retryMs, failures)
        const isHopeless = !fault.mayPass || (fault.isForCredentials && failures > 1)
        if (isHopeless || performance.now() + waitMs > untilMs)
          throw new NotOurStore(`${this.location} ${fault.message}`, { cause: error })
        await pause(waitMs)
      }
    }
  }

  async #attempt(call: S3Call): Promise<S3Opened> {
    const { method, body, may = [] } = call
    const url = urlOf(this.#address, call.key)
    for (const [name, value] of Object.entries(call.query ?? {})) url.searchParams.set(name, value)
    const given = body?.open()
    const {
      statusCode,
      headers,
      body: answer,
    } = await this.#agent.request({
      origin: url.origin,
      path: url.pathname + url.search,
      method,
      headers: await this.#sign(call, url),
      body:
        given === undefined || Buffer.isBuffer(given) ? given : Readable.from(given, { objectMode: false }),
      signal: method === 'GET' ? null : AbortSignal.timeout(attemptMs + transferMs(call)),
    })
    const opened = { status: statusCode, headers: flat(headers), body: answer }
    if ((statusCode >= 200 && statusCode < 300) || may.includes(statusCode)) return opened
    throw toFault(statusCode, await readText(answer))
  }

  async #sign({ method, headers = {}, body }: S3Call, url: URL): Promise<Record<string, string>> {
    const { accessKeyId, secretAccessKey, sessionToken } = await this.#credentials
      .current()
      .catch((error) => {
        throw new S3Fault(`cannot be used: ${error.message}`, { mayPass: false })
      })
    const signer = new AwsV4Signer({
      accessKeyId,
      secretAccessKey,
      ...(sessionToken !== undefined && { sessionToken }),
      method,
      url: url.href,
      service: 's3',
      region: this.#address.region,
      cache: this.#signingKeys,
      // Every store verifies this hash, also one that does not know x-amz-checksum-sha256.
      headers: { ...headers, 'x-amz-content-sha256': body?.sha256 ?? emptySha256 },
    })
    const signed = Object.fromEntries((await signer.sign()).headers)
    return body ? { ...signed, 'content-length': String(body.sizeBytes) } : signed
  }
}

function transferMs({ body }: S3Call): number {
  return Math.ceil((body?.sizeBytes ?? 0) / slowestBytesPerMs)
}

async function readText(body: Readable): Promise<string> {
  const pieces: Buffer[] = []
  let sizeBytes = 0
  for await (const piece of body) {
    sizeBytes += piece.length
    if (sizeBytes > maxAnswerBytes) throw new S3Fault('answers with too many bytes', { mayPass: false })
    pieces.push(piece)
  }
  return Buffer.concat(pieces).toString('utf8')
}

function flat(headers: Dispatcher.ResponseData['headers']): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]))
}

/** Returns the body of these bytes. */
export function bodyOf(bytes: Buffer): S3Body {
  return {
    sizeBytes: bytes.length,
    sha256: createHash('sha256').update(bytes).digest('hex'),
    open: () => bytes,
  }
}
