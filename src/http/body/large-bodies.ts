// Reads large bodies beside the main thread, which everyone else's requests and mail wait for.
import { ServiceError } from '../../base/errors.ts'
import { ThreadPool } from '../../base/thread-pool.ts'
import { RequestFault } from './request-fault.ts'
import type { BodyAnswer, BodyRequest } from './worker.ts'

/** What was made of a large body, so that nothing that takes long is left to do. */
export interface LargeBody {
  requestHash: Buffer
  /** The bytes of the large ones among its attachments, by their place; null where they are not canonical base64. */
  files: Map<number, Buffer | null>
}

/** Ten times what 64 MiB take; 16 MiB take 0.1 to 0.4 s. */
const timeoutMs = 10_000

export class LargeBodies {
  readonly #pool = new ThreadPool<BodyRequest, BodyAnswer>({
    script: new URL('./worker.ts', import.meta.url),
    what: 'read bodies',
    threads: 1,
    // What is made of 64 MiB, as much as one organization holds by default, has several copies for a moment.
    heapMb: 1024,
    // It holds 80 MB after the largest.
    idleMs: 5_000,
    pack: (request) => ({ message: request, transfer: [request.bytes.buffer as ArrayBuffer] }),
  })

  /** `bytes` must be alone in their memory, which goes to the thread. Faults are those of `parseJson`, and `unavailable`. */
  async read(bytes: Buffer, params: object): Promise<{ value: unknown; large: LargeBody }> {
    const outcome = await this.#pool.run({ bytes, params }, { timeoutMs, isWanted: () => true })
    if (outcome === 'late') throw new ServiceError('unavailable', 'Reading the body took too long.')
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
