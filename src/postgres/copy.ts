// COPY over a connection: rows out as they come and in as fast as the server takes them, in bounded memory.
import { once } from 'node:events'
import type pg from 'pg'
import { DbFault } from './db.ts'

const pieceBytes = 256 * 1024

/** What `pg` has of a connection, and its types do not say. */
interface CopyConnection extends pg.Connection {
  sendCopyFromChunk(chunk: Buffer): void
  endCopyFrom(): void
  sendCopyFail(reason: string): void
}

export interface CopiedOut {
  /** The server waits while the last one is in use. Who breaks off ends the connection. */
  pieces: AsyncGenerator<Buffer>
  /** How many there were, once all pieces have come. */
  rowCount(): number
}

/** Sends a `COPY … TO STDOUT` once the first piece is asked for. */
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

/** Sends `pieces` to a `COPY … FROM STDIN`; resolves with how many rows they were once the server has them all. */
export async function copyIn(
  client: pg.ClientBase,
  sql: string,
  pieces: AsyncIterable<Buffer>,
): Promise<number> {
  return await client.query(new CopyIn(sql, pieces)).rows
}

/** What both directions have in common: one statement, its end, its fault. */
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

  /** The connection's buffer is used again: the bytes are copied before it is. */
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

  /** Null behind the last one. */
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
  /** Why nothing more could be sent; what the server says of it then is no news. */
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
      if (signal.aborted) return // the server has said why
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
