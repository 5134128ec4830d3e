// COPY over a connection: streams rows out and in, as fast as both sides read, in bounded memory.
import { once } from 'node:events'
import type pg from 'pg'
import { DbFault } from './db.ts'

const pieceBytes = 256 * 1024

/** Methods of pg's connection that its types omit. */
interface CopyConnection extends pg.Connection {
  sendCopyFromChunk(chunk: Buffer): void
  endCopyFrom(): void
  sendCopyFail(reason: string): void
}

export interface CopiedOut {
  /** The server waits while the caller handles a piece. Leaving the loop early closes the connection. */
  pieces: AsyncGenerator<Buffer>
  /** Number of rows, once all pieces were read. */
  rowCount(): number
}

/** Sends a `COPY … TO STDOUT` when the first piece is requested. */
export function copyOut(client: pg.ClientBase, sql: string): CopiedOut {
  const query = new CopyOut(sql)
  return { pieces: readPieces(client, query), rowCount: () => query.rowCount }
}

async function* readPieces(client: pg.ClientBase, query: CopyOut): AsyncGenerator<Buffer> {
  client.query(query)
  try {
    for (;;) {
      const piece = await query.next()
      if (!piece) return
      yield piece
    }
  } finally {
    query.abandon()
  }
}

/** Sends `pieces` to a `COPY … FROM STDIN`. Resolves with the number of rows once the server has them all. */
export async function copyIn(
  client: pg.ClientBase,
  sql: string,
  pieces: AsyncIterable<Buffer>,
): Promise<number> {
  return await client.query(new CopyIn(sql, pieces)).rows
}

/** The common part of both directions: one statement, its end, its fault. */
abstract class Copy implements pg.Submittable {
  rowCount = 0
  readonly #sql: string

  constructor(sql: string) {
    this.#sql = sql
  }

  submit(connection: pg.Connection): void {
    connection.query(this.#sql)
  }

  abstract handleError(error: Error): void
  abstract handleReadyForQuery(): void

  handleCommandComplete({ text }: { text: string }): void {
    this.rowCount = Number(/^COPY (\d+)/.exec(text)?.[1] ?? 0)
  }

  handleCopyInResponse(connection: CopyConnection): void {
    connection.sendCopyFail('nothing is copied in')
  }
  handleCopyData(_message: { chunk: Buffer }, _connection: CopyConnection): void {}
}

class CopyOut extends Copy {
  readonly #full: Buffer[] = []
  #piece = Buffer.allocUnsafeSlow(pieceBytes)
  #length = 0
  #connection: CopyConnection | null = null
  #fault: DbFault | null = null
  #isOver = false
  #wake: () => void = () => {}

  override submit(connection: pg.Connection): void {
    this.#connection = connection as CopyConnection
    super.submit(connection)
  }

  /** Copies the bytes, because the connection reuses its buffer. */
  override handleCopyData({ chunk }: { chunk: Buffer }, { stream }: CopyConnection): void {
    for (let at = 0; at < chunk.length; ) {
      const count = chunk.copy(this.#piece, this.#length, at)
      this.#length += count
      at += count
      if (this.#length < pieceBytes) continue
      this.#full.push(this.#piece)
      this.#piece = Buffer.allocUnsafeSlow(pieceBytes)
      this.#length = 0
    }
    if (this.#full.length === 0) return
    stream.pause()
    this.#wake()
  }

  override handleError(error: Error): void {
    this.#fault = new DbFault(error)
    this.#end()
  }

  override handleReadyForQuery(): void {
    this.#end()
  }

  #end(): void {
    this.#isOver = true
    this.#connection?.stream.resume()
    this.#wake()
  }

  /** Returns the next piece; null after the last. */
  async next(): Promise<Buffer | null> {
    while (this.#full.length === 0 && !this.#isOver) {
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#wake = resolve
      this.#connection?.stream.resume()
      await promise
    }
    if (this.#fault) throw this.#fault
    const piece = this.#full.shift()
    if (piece) return piece
    const rest = this.#piece.subarray(0, this.#length)
    this.#length = 0
    return rest.length > 0 ? rest : null
  }

  abandon(): void {
    if (!this.#isOver) this.#connection?.stream.destroy()
  }
}

class CopyIn extends Copy {
  readonly rows: Promise<number>
  readonly #pieces: AsyncIterable<Buffer>
  readonly #settle: { resolve(rows: number): void; reject(error: Error): void }
  readonly #over = new AbortController()
  /** The error of `pieces`. It takes precedence over the server's error, which is only its consequence. */
  #broken: Error | null = null

  constructor(sql: string, pieces: AsyncIterable<Buffer>) {
    super(sql)
    this.#pieces = pieces
    const { promise, resolve, reject } = Promise.withResolvers<number>()
    this.rows = promise
    this.#settle = { resolve, reject }
  }

  override handleCopyInResponse(connection: CopyConnection): void {
    void this.#send(connection)
  }

  async #send(connection: CopyConnection): Promise<void> {
    const { signal } = this.#over
    try {
      for await (const piece of this.#pieces) {
        if (signal.aborted) return
        connection.sendCopyFromChunk(piece)
        if (connection.stream.writableNeedDrain) await once(connection.stream, 'drain', { signal })
      }
      connection.endCopyFrom()
    } catch (error) {
      if (signal.aborted) return // the server has sent its error
      this.#broken = error as Error
      connection.sendCopyFail('what was to be copied cannot be read')
    }
  }

  override handleError(error: Error): void {
    this.#over.abort()
    this.#settle.reject(this.#broken ?? new DbFault(error))
  }

  override handleReadyForQuery(): void {
    this.#settle.resolve(this.rowCount)
  }
}
