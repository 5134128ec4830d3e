// Pages of lists: the limit as it is asked for, and cursors that nobody can make or carry elsewhere.
import type { FastifyRequest } from 'fastify'
import Type from 'typebox'
import { ServiceError } from '../base/errors.ts'
import type { SecretBox } from '../base/secret-box.ts'

const defaultLimit = 50
const purpose = 'list cursor'
const macBytes = 16
const maxCursor = 300

/** The query parameters of every list. */
export const pageQuery = {
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 100, default: defaultLimit, description: 'How many a page holds.' }),
  ),
  cursor: Type.Optional(
    Type.String({
      minLength: 1,
      description: 'The `nextCursor` of the page before; omitted: the first page.',
    }),
  ),
}

/** Those of lists of messages. */
export const messagePageQuery = {
  ...pageQuery,
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 100,
      default: defaultLimit,
      description:
        'How many a page holds at most. It ends earlier if its messages are over 1 MiB; `nextCursor` then leads to the others.',
    }),
  ),
}

/** Reads `limit` as the number it is written as; anything but plain digits stays text, which its schema refuses. */
export async function readLimit(request: FastifyRequest): Promise<void> {
  readNumber(request, 'limit')
}

/** Reads a parameter of the query that is a number, as `readLimit` does. */
export function readNumber(request: FastifyRequest, name: string): void {
  const query = request.query as Record<string, unknown>
  const text = query[name]
  if (typeof text === 'string' && /^(?:0|[1-9]\d{0,8})$/.test(text)) query[name] = Number(text)
}

/** One list of one organization: a cursor of another one is not valid here. */
export interface ListName {
  /** The list and what it belongs to, such as `messages inb_…`. */
  list: string
  organizationId: string
}

interface PageQuery {
  limit?: number
  cursor?: string
}

/** How many a page of the list holds at most. */
export function limitOf({ limit }: PageQuery): number {
  return limit ?? defaultLimit
}

/** The key of what lists by its id. */
export function byId({ id }: { id: string }): string {
  return id
}

/** Makes and reads cursors: a place in a list, under a keyed digest of the list, the organization and the place. */
export class Cursors {
  readonly #secretBox: SecretBox

  constructor(secretBox: SecretBox) {
    this.#secretBox = secretBox
  }

  /** The cursor that leads to what follows `position`. */
  write(name: ListName, position: string): string {
    const mac = this.#secretBox.digest(purpose, textOf(name, position), macBytes)
    return Buffer.concat([mac, Buffer.from(position)]).toString('base64url')
  }

  /** The place that the cursor stands for, null without a cursor; throws `invalid_cursor` for one not issued for this list. */
  read(name: ListName, cursor: string | undefined): string | null {
    if (cursor === undefined) return null
    const bytes = Buffer.from(cursor.slice(0, maxCursor), 'base64url')
    const position = bytes.subarray(macBytes).toString()
    const genuine =
      bytes.length > macBytes &&
      bytes.toString('base64url') === cursor &&
      this.#secretBox.isDigest(purpose, textOf(name, position), bytes.subarray(0, macBytes))
    if (!genuine) throw new ServiceError('invalid_cursor')
    return position
  }

  /**
   * A page of the list in `nextCursor`'s order: `read` returns up to `limit` rows behind the one that had the key, from the
   * first where it is null. A cursor that is not of this list is refused before anything is read.
   */
  async page<Row>(
    name: ListName,
    query: PageQuery,
    keyOf: (row: Row) => string,
    read: (key: string | null, limit: number) => Promise<Row[]>,
  ): Promise<{ page: Row[]; nextCursor: string | null }> {
    const limit = limitOf(query)
    const rows = await read(this.read(name, query.cursor), limit + 1)
    const page = rows.slice(0, limit)
    return { page, nextCursor: rows.length > limit ? this.write(name, keyOf(page.at(-1)!)) : null }
  }
}

/** What is signed. */
function textOf({ list, organizationId }: ListName, position: string): string {
  return `${list}\n${organizationId}\n${position}`
}
