// Columns of a batch as arrays in PostgreSQL's binary form: no escaping here, and no parsing in PostgreSQL.

// pg sends a Buffer as a binary parameter, unchanged. The array format is that of array_recv (arrayfuncs.c): the number of
// dimensions, a flag for nulls, and the OID of the element type. Then follow the length and lower bound of the dimension,
// and each element's length and bytes.

interface Element {
  oid: number
  /** Writes the value at `at` and returns the offset after it. */
  write(value: never, at: number): number
}

/** A boolean to store, not a flag that changes what a function does. */
type Truth = boolean

const first = 1
const headBytes = 20
const nullLength = -1
/** 2000-01-01, PostgreSQL's epoch. */
const epochMs = 946_684_800_000

const keptBytes = 1 << 20
let scratch = Buffer.allocUnsafe(1 << 16)

/** Makes room for `bytes` more bytes at `at`. */
function reserve(at: number, bytes: number): void {
  if (at + bytes <= scratch.length) return
  const larger = Buffer.allocUnsafe(bytes > keptBytes ? at + bytes + (1 << 16) : 2 * (at + bytes))
  scratch.copy(larger, 0, 0, at)
  scratch = larger
}

function writeText(value: string | Uint8Array, at: number): number {
  if (typeof value !== 'string') return writeBytes(value, at)
  // A UTF-16 unit becomes at most three bytes. For long texts, counting the bytes saves memory.
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

/** Returns one column of a batch as the parameter of an array type, such as `uuid[]`. */
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
    // Room for the length, and for the largest element of a fixed size.
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

/** Returns the size of the values that are bytes already, so that the buffer grows once for all of them. */
function bytesIn(values: readonly unknown[]): number {
  return values.reduce<number>((sum, one) => sum + (one instanceof Uint8Array ? one.length + 4 : 0), 0)
}

/** Returns one column, read from each row. */
export function columnOf<Type extends keyof Elements, Row>(
  type: Type,
  rows: readonly Row[],
  read: (row: Row) => Value<Type> | null,
): Buffer {
  return column(type, rows.map(read))
}

/** Below this size, freeing memory costs as much as leaving it to the garbage collector. */
const releasedBytes = 16 << 10

/**
 * Frees the memory of large buffers that are not shared, such as columns after their statement. The garbage collector
 * would keep it for long, and would run more often because of it. Do not call it after a failed statement: the socket
 * may still be reading the buffers.
 */
export function releaseBytes(values: readonly unknown[]): void {
  for (const one of values) {
    if (!(one instanceof Uint8Array)) continue
    const { byteLength } = one.buffer
    const isOwn = byteLength === one.length ? byteLength > releasedBytes : byteLength > keptBytes
    if (isOwn) (one.buffer as ArrayBuffer).transfer(0)
  }
}

/** Returns one field of each row of a batch. */
export function pick<Row, Name extends keyof Row>(rows: Row[], name: Name): Row[Name][] {
  return rows.map((row) => row[name])
}

/** Joins each list into one text, one entry per line. No entry (an address, a Message-ID) may have a line end. */
export function lines(lists: string[][]): string[] {
  return lists.map((list) => list.join('\n'))
}
