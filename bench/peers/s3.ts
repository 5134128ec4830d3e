// S3 for the benchmarks: s3rver in a separate program, whose cost is not that of the service.
import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Scope } from '../../tests/support/until.ts'
import { startChild, temporaryFolder, untilReady } from '../children.ts'

export interface S3 {
  /** For `POSTHORN_BLOB_URL`. */
  url: string
  /** The variables of its credentials. */
  env: Record<string, string>
  pids(): number[]
  /** Returns the number of stored objects. */
  countObjects(): number
}

const program = fileURLToPath(new URL('s3-server.ts', import.meta.url))
const bucket = 'posthorn-bench'

export async function startS3(scope: Scope): Promise<S3> {
  const folder = temporaryFolder(scope, 's3')
  const child = startChild(scope, folder, process.execPath, [program, `${folder}/objects`, bucket])
  const port = await untilReady(child, 'S3 listens', () => Number(child.output()))
  return {
    url: `s3://${bucket}/mail?endpoint=http://127.0.0.1:${port}`,
    env: { AWS_ACCESS_KEY_ID: 'S3RVER', AWS_SECRET_ACCESS_KEY: 'S3RVER' },
    pids: () => [child.pid],
    countObjects: () =>
      readdirSync(`${folder}/objects/${bucket}`, { recursive: true }).filter((name) =>
        `${name}`.endsWith('._S3rver_object'),
      ).length,
  }
}
