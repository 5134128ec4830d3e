// Pages of lists: the requested limit, and cursors that cannot be forged or used for another list.
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

/** The query parameters of lists of messages. */
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

/** Converts `limit` to a number if it is plain digits. Other values stay text, which the schema refuses. */
export async function readLimit(request: FastifyRequest): Promise<void> {
  readNumber(request, 'limit')
}

/** Converts a numeric query parameter, as `readLimit` does. */
export function readNumber(request: FastifyRequest, name: string): void {
  const query = request.query as Record<string, unknown>
  const text = query[name]
  if (typeof text === 'string' && /^(?:0|[1-9]\d{0,8})$/.test(text)) query[name] = Number(text)
}

/** One list of one organization. Cursors of other lists are not valid here. */
export interface ListName {
  /** The list and its parent, such as `messages inb_…`. */
  list: string
  organizationId: string
}

interface PageQuery {
  limit?: number
  cursor?: string
}

/** The largest number of items on a page. */
export function limitOf({ limit }: PageQuery): number {
  return limit ?? defaultLimit
}

/** The key of rows that are listed by id. */
export function byId({ id }: { id: string }): string {
  return id
}

/** Writes and reads cursors: a position in a list, with a keyed digest of the list, the organization and the position. */
export class Cursors {
  readonly #secretBox: SecretBox

  constructor(secretBox: SecretBox) {
    this.#secretBox = secretBox
  }

  /** Returns the cursor for the items after `position`. */
  write(name: ListName, position: string): string {
    const mac = this.#secretBox.digest(purpose, textOf(name, position), macBytes)
    return Buffer.concat([mac, Buffer.from(position)]).toString('base64url')
  }

  /** Returns the cursor's position, or null without a cursor. Throws `invalid_cursor` if it was not issued for this list. */
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
   * Returns a page of the list and its `nextCursor`. `read` returns up to `limit` rows after the row with the key, or the
   * first rows if the key is null. Refuses a cursor of another list before reading anything.
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

/** The text that the digest covers. */
function textOf({ list, organizationId }: ListName, position: string): string {
  return `${list}\n${organizationId}\n${position}`
}
