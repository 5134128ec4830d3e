// An S3 server of a test: s3rver, and before it a proxy that checks what S3 checks, and fails as a test wants.
import { createHash, randomUUID } from 'node:crypto'
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import S3rver, { type Store } from 's3rver'
import { type Scope, until } from './until.ts'

const bucket = 'posthorn-test'

/** Faults of the store, which a test sets and resets. */
export interface S3Faults {
  /** Every call with this number, counted from the start, gets 500. */
  failEvery: number | null
  /** The delay of each answer. */
  delayMs: number
  /** How many further answers to GET end after half of their bytes. */
  cutAnswers: number
  /** How many further uploads lose their connection after half of their bytes. */
  cutUploads: number
  /** How many further uploads arrive with another byte. */
  changeUploads: number
  /** Uploads of these objects are acknowledged and forgotten. */
  lose: RegExp | null
  /** Answers have no times. */
  hideTimes: boolean
  /** Calls for which this returns true get 503. */
  refuse: ((call: string) => boolean) | null
  /** Calls for which this returns true get 403, which is not tried again. */
  forbid: ((call: string) => boolean) | null
}

const well: S3Faults = {
  failEvery: null,
  delayMs: 0,
  cutAnswers: 0,
  cutUploads: 0,
  changeUploads: 0,
  lose: null,
  hideTimes: false,
  refuse: null,
  forbid: null,
}

export interface S3Server {
  /** An address of its own in the bucket, as `POSTHORN_BLOB_URL`. */
  makeUrl(): string
  /** The variables of the credentials. */
  env: Record<string, string>
  faults: S3Faults
  /** Ends all faults. */
  heal(): void
  /** All calls so far: method, path and query. */
  calls: string[]
  /** The names of all stored objects that match. */
  listObjects(wanted: RegExp): string[]
  /** Loses a stored object. */
  removeObject(name: string): void
  /** Uploads in parts that are neither completed nor aborted, by id. */
  uploads: Map<string, { key: string; initiatedAt: Date }>
}

/** Starts the server on an address of this machine. It ends with the scope. */
export async function startS3(scope: Scope, { host = '127.0.0.1' } = {}): Promise<S3Server> {
  const directory = mkdtempSync(join(tmpdir(), 'posthorn-s3-'))
  const store = new S3rver({
    address: '127.0.0.1',
    port: 0,
    silent: true,
    directory,
    vhostBuckets: false,
    configureBuckets: [{ name: bucket, configs: [] }],
  })
  writeWholeFiles(store.store)
  const { port: storePort } = await store.run()
  const faults = { ...well }
  const calls: string[] = []
  const uploads: S3Server['uploads'] = new Map()
  const inTurn = new Map<string, Promise<void>>()
  const proxy = createServer((asked, answer) => {
    const call = `${asked.method} ${asked.url}`
    calls.push(call)
    void pass({ asked, answer, storePort, faults, uploads, inTurn, number: calls.length }).catch(() =>
      answer.destroy(),
    )
  })
  await new Promise<void>((resolve) => proxy.listen(0, host, resolve))
  scope.after(async () => {
    proxy.closeAllConnections()
    await new Promise((resolve) => proxy.close(resolve))
    await store.close()
    rmSync(directory, { recursive: true, force: true })
  })
  const { port } = proxy.address() as AddressInfo
  return {
    makeUrl: () => `s3://${bucket}/${randomUUID()}?endpoint=http://${host}:${port}`,
    env: { AWS_ACCESS_KEY_ID: 'S3RVER', AWS_SECRET_ACCESS_KEY: 'S3RVER' },
    faults,
    heal: () => void Object.assign(faults, well),
    calls,
    listObjects: (wanted) =>
      (readdirSync(join(directory, bucket), { recursive: true }) as string[])
        .filter((name) => name.endsWith('._S3rver_object'))
        .map((name) => name.slice(0, -'._S3rver_object'.length))
        .filter((name) => wanted.test(name)),
    removeObject: (name) => rmSync(`${join(directory, bucket, name)}._S3rver_object`),
    uploads,
  }
}

/** Keeps an upload unanswered until its file is whole, as S3 does. s3rver answers once it has read the upload. */
function writeWholeFiles(store: Store): void {
  const [putObject, putPart] = [store.putObject.bind(store), store.putPart.bind(store)]
  const whole = async (file: string, size: number) =>
    await until('the file to be whole', () => statSync(file).size === size)
  store.putObject = async (object) => {
    const stored = await putObject(object)
    await whole(store.getResourcePath(object.bucket, object.key, 'object'), stored.size)
    return stored
  }
  store.putPart = async (bucketName, uploadId, number, content) => {
    const stored = await putPart(bucketName, uploadId, number, content)
    await whole(
      join(store.getResourcePath(bucketName, undefined, 'uploads'), uploadId, `${number}`),
      stored.size,
    )
    return stored
  }
}

interface Passing {
  asked: IncomingMessage
  answer: ServerResponse
  storePort: number
  faults: S3Faults
  uploads: S3Server['uploads']
  /** For each path, the last call that was passed on. It ends with the answer. */
  inTurn: Map<string, Promise<void>>
  number: number
}

async function pass(passing: Passing): Promise<void> {
  const { asked, answer, faults, number } = passing
  const isUpload = asked.method === 'PUT'
  const body = isUpload && faults.cutUploads > 0 ? await readHalf(asked, faults) : await readAll(asked)
  if (body === null) return
  if (faults.delayMs > 0) await pause(faults.delayMs)
  const call = `${asked.method} ${asked.url}`
  if (faults.failEvery !== null && number % faults.failEvery === 0)
    return refuse(answer, 500, 'InternalError')
  if (faults.refuse?.(call)) return refuse(answer, 503, 'ServiceUnavailable')
  if (faults.forbid?.(call)) return refuse(answer, 403, 'AccessDenied')
  if (isUpload && faults.changeUploads > 0 && body.length > 0) {
    faults.changeUploads--
    body[0]! ^= 1
  }
  if (createHash('sha256').update(body).digest('hex') !== asked.headers['x-amz-content-sha256'])
    return refuse(answer, 400, 'XAmzContentSHA256Mismatch')
  const checksum = asked.headers['x-amz-checksum-sha256']
  if (isUpload && checksum && createHash('sha256').update(body).digest('base64') !== checksum)
    return refuse(answer, 400, 'BadDigest')
  if (isUpload && faults.lose?.test(asked.url!)) return void answer.writeHead(200).end()
  if (answersItself(passing)) return
  await forwardInTurn(passing, body)
}

/** A reader gets the old object or the new one, as from S3: s3rver overwrites the file that others read. */
async function forwardInTurn(passing: Passing, body: Buffer): Promise<void> {
  const { inTurn, asked } = passing
  const path = asked.url!.split('?', 1)[0]!
  const earlier = inTurn.get(path)
  const own = (earlier ?? Promise.resolve()).catch(() => {}).then(() => forward(passing, body))
  inTurn.set(path, own)
  await own.finally(() => inTurn.get(path) === own && inTurn.delete(path))
}

/** The calls for uploads in parts that s3rver lacks. */
function answersItself({ asked, answer, faults, uploads }: Passing): boolean {
  const url = new URL(asked.url!, 'http://s3')
  const id = url.searchParams.get('uploadId')
  if (asked.method === 'DELETE' && id !== null) {
    if (uploads.delete(id)) answer.writeHead(204).end()
    else refuse(answer, 404, 'NoSuchUpload')
    return true
  }
  if (asked.method !== 'GET' || !url.searchParams.has('uploads')) return false
  const prefix = url.searchParams.get('prefix') ?? ''
  const entries = [...uploads]
    .filter(([, { key }]) => key.startsWith(prefix))
    .map(
      ([uploadId, { key, initiatedAt }]) =>
        `<Upload><Key>${key}</Key><UploadId>${uploadId}</UploadId>${faults.hideTimes ? '' : `<Initiated>${initiatedAt.toISOString()}</Initiated>`}</Upload>`,
    )
  answer.end(
    `<ListMultipartUploadsResult>${entries.join('')}<IsTruncated>false</IsTruncated></ListMultipartUploadsResult>`,
  )
  return true
}

async function forward({ asked, answer, storePort, faults, uploads }: Passing, body: Buffer): Promise<void> {
  const { method, url, headers } = asked
  const options = { port: storePort, host: '127.0.0.1', method, path: url, headers, agent: false } as const
  const stored = await new Promise<IncomingMessage>((resolve, reject) => {
    request(options, resolve).on('error', reject).end(body)
  })
  const bytes = await readAll(stored)
  const parsed = new URL(url!, 'http://s3')
  const id = /<UploadId>(\w+)</.exec(bytes.toString('latin1'))?.[1]
  if (method === 'POST' && id && parsed.searchParams.has('uploads'))
    uploads.set(id, { key: parsed.pathname.split('/').slice(2).join('/'), initiatedAt: new Date() })
  if (method === 'POST' && parsed.searchParams.has('uploadId'))
    uploads.delete(parsed.searchParams.get('uploadId')!)
  const isCut = method === 'GET' && faults.cutAnswers > 0 && bytes.length > 1
  if (isCut) faults.cutAnswers--
  if (faults.hideTimes) delete stored.headers['last-modified']
  answer.writeHead(stored.statusCode!, stored.headers)
  if (!isCut) return void answer.end(bytes)
  answer.write(bytes.subarray(0, bytes.length / 2), () => answer.destroy())
}

function refuse(answer: ServerResponse, status: number, code: string): void {
  answer.writeHead(status).end(`<Error><Code>${code}</Code></Error>`)
}

async function readAll(stream: IncomingMessage): Promise<Buffer> {
  return Buffer.concat(await stream.toArray())
}

/** Reads half of the upload and closes its connection. */
async function readHalf(asked: IncomingMessage, faults: S3Faults): Promise<null> {
  faults.cutUploads--
  const half = Number(asked.headers['content-length']) / 2
  let read = 0
  for await (const piece of asked) {
    read += piece.length
    if (read >= half) break
  }
  asked.socket.destroy()
  return null
}
