// Columns of a batch as arrays in PostgreSQL's binary form: nothing is escaped here, and nothing is parsed there.

// pg sends a Buffer as a binary parameter, as it is. The form of arrays is that of array_recv (arrayfuncs.c): dimensions,
// whether there are nulls, the element's type; length and lower bound of the dimension; then each element's length and bytes.

interface Element {
  oid: number
  /** Writes the value at `at` and returns where it ends. */
  write(value: never, at: number): number
}

/** A value to be stored, not a switch. */
type Truth = boolean

const first = 1
const headBytes = 20
const nullLength = -1
/** 2000-01-01, which PostgreSQL counts from. */
const epochMs = 946_684_800_000

const keptBytes = 1 << 20
let scratch = Buffer.allocUnsafe(1 << 16)

/** Room for `bytes` more from `at` on. */
function reserve(at: number, bytes: number): void {
  if (at + bytes <= scratch.length) return
  const larger = Buffer.allocUnsafe(bytes > keptBytes ? at + bytes + (1 << 16) : 2 * (at + bytes))
  scratch.copy(larger, 0, 0, at)
  scratch = larger
}

function writeText(value: string | Uint8Array, at: number): number {
  if (typeof value !== 'string') return writeBytes(value, at)
  // A UTF-16 unit makes three bytes at most; for long texts it is worth counting.
  reserve(at, value.length < 10_000 ? 3 * value.length : Buffer.byteLength(value))
  return at + scratch.write(value, at)
}

function writeBytes(value: Uint8Array, at: number): number {
  reserve(at, value.length)
  scratch.set(value, at)
  return at + value.length
}

const elements = {
  uuid: {
    oid: 2950,
    write: (value: string, at: number) => at + scratch.write(value.replaceAll('-', ''), at, 'hex'),
  },
  text: { oid: 25, write: writeText },
  bytea: { oid: 17, write: writeBytes },
  // jsonb_recv: version 1, then the text.
  jsonb: {
    oid: 3802,
    write: (value: unknown, at: number) => writeText(JSON.stringify(value), scratch.writeInt8(1, at)),
  },
  integer: { oid: 23, write: (value: number, at: number) => scratch.writeInt32BE(value, at) },
  bigint: { oid: 20, write: (value: number, at: number) => scratch.writeBigInt64BE(BigInt(value), at) },
  boolean: { oid: 16, write: (value: Truth, at: number) => scratch.writeInt8(value ? 1 : 0, at) },
  timestamptz: {
    oid: 1184,
    write: (value: Date, at: number) =>
      scratch.writeBigInt64BE(BigInt(value.getTime() - epochMs) * 1000n, at),
  },
} satisfies Record<string, Element>

type Elements = typeof elements
type Value<Type extends keyof Elements> = Parameters<Elements[Type]['write']>[0]

/** One column of a batch as the parameter of an array type, such as `uuid[]`. */
export function column<Type extends keyof Elements>(
  type: Type,
  values: readonly (Value<Type> | null)[],
): Buffer {
  const { oid, write } = elements[type] as Element
  scratch.writeInt32BE(values.length === 0 ? 0 : 1, 0)
  scratch.writeInt32BE(values.includes(null) ? 1 : 0, 4)
  scratch.writeUInt32BE(oid, 8)
  if (values.length === 0) return Buffer.from(scratch.subarray(0, 12))
  scratch.writeInt32BE(values.length, 12)
  scratch.writeInt32BE(first, 16)
  reserve(headBytes, bytesIn(values))
  let end = headBytes
  for (const value of values) {
    // The length, and the largest element of a fixed size.
    reserve(end, 4 + 16)
    const begin = end + 4
    const next = value === null ? begin : write(value as never, begin)
    scratch.writeInt32BE(value === null ? nullLength : next - begin, end)
    end = next
  }
  const written = scratch.subarray(0, end)
  if (scratch.length <= keptBytes) return Buffer.from(written)
  scratch = Buffer.allocUnsafe(1 << 16)
  return written
}

/** What is given as bytes, so that there is room for all of it at once. */
function bytesIn(values: readonly unknown[]): number {
  return values.reduce<number>((sum, one) => sum + (one instanceof Uint8Array ? one.length + 4 : 0), 0)
}

/** One column of what each of the rows says. */
export function columnOf<Type extends keyof Elements, Row>(
  type: Type,
  rows: readonly Row[],
  read: (row: Row) => Value<Type> | null,
): Buffer {
  return column(type, rows.map(read))
}

/** Below this it costs as much to give memory back as to leave it. */
const releasedBytes = 16 << 10

/**
 * Gives back the memory of what is large and its own, such as columns once their statement has passed: the collector would
 * leave it for long, and go through all of the heap the sooner for it. After a failure the socket may still read them.
 */
export function releaseBytes(values: readonly unknown[]): void {
  for (const one of values) {
    if (!(one instanceof Uint8Array)) continue
    const { byteLength } = one.buffer
    const isOwn = byteLength === one.length ? byteLength > releasedBytes : byteLength > keptBytes
    if (isOwn) (one.buffer as ArrayBuffer).transfer(0)
  }
}

/** One field of the rows of a batch. */
export function pick<Row, Name extends keyof Row>(rows: Row[], name: Name): Row[Name][] {
  return rows.map((row) => row[name])
}

/** Lists of what holds no line ends, such as addresses and Message-IDs, as one element each: a line an entry. */
export function lines(lists: string[][]): string[] {
  return lists.map((list) => list.join('\n'))
}
