// Reads large bodies in a worker thread, so that other requests and mail do not wait for them.
import { ServiceError } from '../../base/errors.ts'
import { ThreadPool } from '../../base/thread-pool.ts'
import { RequestFault } from './request-fault.ts'
import type { BodyAnswer, BodyRequest } from './worker.ts'

/** The results of the slow work on a large body, which the thread has already done. */
export interface LargeBody {
  requestHash: Buffer
  /** The decoded bytes of its large attachments, by index; null if they are not canonical base64. */
  files: Map<number, Buffer | null>
}

/** Ten times as long as 64 MiB take. 16 MiB take 0.1 to 0.4 s. */
const timeoutMs = 10_000

export class LargeBodies {
  readonly #pool = new ThreadPool<BodyRequest, BodyAnswer>({
    script: new URL('./worker.ts', import.meta.url),
    what: 'read bodies',
    threads: 1,
    // Reading a body makes several copies for a moment. It may have 64 MiB, the default share of one organization.
    heapMb: 1024,
    // The thread holds 80 MB after the largest body.
    idleMs: 5_000,
    pack: (request) => ({ message: request, transfer: [request.bytes.buffer as ArrayBuffer] }),
  })

  /**
   * `bytes` must own its ArrayBuffer, which is transferred to the thread. Throws the faults of `parseJson`, and
   * `unavailable`.
   */
  async read(bytes: Buffer, params: object): Promise<{ value: unknown; large: LargeBody }> {
    const outcome = await this.#pool.run({ bytes, params }, { timeoutMs, isWanted: () => true })
    if (outcome === 'late')
      throw new ServiceError('unavailable', 'Reading the body took too long. Try again.')
    if ('fault' in outcome) throw new Error(outcome.fault)
    if ('refusal' in outcome) throw new RequestFault(outcome.refusal.code, outcome.refusal.message)
    const { value, requestHash, files } = outcome.body
    const decoded = [...files].map(([at, file]) => [at, file && Buffer.from(file.buffer)] as const)
    return { value, large: { requestHash: Buffer.from(requestHash), files: new Map(decoded) } }
  }

  async close(): Promise<void> {
    await this.#pool.close()
  }
}
