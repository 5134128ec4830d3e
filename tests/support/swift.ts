// OpenStack Swift from Debian's packages, with its S3 API, as a store of a test.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { newUuid } from '../../src/base/ids.ts'
import { S3Client } from '../../src/blobs/s3/s3-client.ts'
import type { Scope } from './until.ts'

/** Debian's own Python has Debian's modules. */
const python = '/usr/bin/python3'
const program = fileURLToPath(new URL('./swift-server.py', import.meta.url))
const bucket = 'posthorn'
const key = { accessKeyId: 'posthorn:test', secretAccessKey: 'secret' }

/** Why Swift cannot be started; null if it can. */
export const swiftMissing = existsSync('/usr/lib/python3/dist-packages/swift/proxy')
  ? null
  : 'swift-proxy, swift-account, swift-container and swift-object are not installed'

/** Starts Swift with an empty bucket. It ends with the scope. `makeUrl` returns a new `POSTHORN_BLOB_URL` in the bucket. */
export async function startSwift(scope: Scope): Promise<{ makeUrl(): string; env: Record<string, string> }> {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-swift-'))
  const swift = spawn(python, [program, folder], { stdio: ['pipe', 'pipe', 'pipe'] })
  const ended = once(swift, 'exit')
  const faults = text(swift.stderr)
  scope.after(async () => {
    swift.stdin.end()
    await ended
    rmSync(folder, { recursive: true, force: true })
  })
  const [port] = await Promise.race([
    once(swift.stdout, 'data'),
    ended.then(async () => {
      throw new Error(`Swift ended: ${await faults}`)
    }),
  ])
  const endpoint = `http://127.0.0.1:${String(port).trim()}`
  const address = { bucket, prefix: '', endpoint, region: 'us-east-1', isPathStyle: true }
  const credentials = { current: async () => ({ ...key, sessionToken: undefined }), forget: () => {} }
  await new S3Client({ address, credentials }).send({ method: 'PUT', key: '' })
  return {
    makeUrl: () => `s3://${bucket}/${newUuid()}?endpoint=${endpoint}`,
    env: { AWS_ACCESS_KEY_ID: key.accessKeyId, AWS_SECRET_ACCESS_KEY: key.secretAccessKey },
  }
}
