// Streams answers whose lists or texts are still in the database: writes JSON as fast as the client takes it.
import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import { LongText } from '../store/long-text.ts'
import { sendStream } from '../web/send-stream.ts'

/** The number of characters that are converted to JSON at a time. */
const sliceLength = 1 << 16
/** Memory that such an answer holds: a piece of a text, and the JSON of a slice of it. */
const writtenBytes = 1 << 20

/** A stream that states how many bytes it holds while it is read. */
export type JsonStream = Readable & { heldBytes: number }

/**
 * Returns the reply for a route's value, which may hold `LongText`s for texts and async iterables for lists. Such a
 * value is sent while it is read. A fault after the first bytes aborts the connection, so that clients do not take a
 * part for the whole. `sourceBytes`: the bytes that the value holds in memory until it is sent.
 */
export function answerJson<Value extends object>(
  reply: FastifyReply,
  value: Value,
  sourceBytes = 0,
): Value | FastifyReply {
  if (!isUnread(value)) return value
  reply.header('content-type', 'application/json; charset=utf-8')
  const heldBytes = writtenBytes + sourceBytes
  const stream: JsonStream = Object.assign(Readable.from(write(value), { objectMode: false }), { heldBytes })
  return sendStream(reply, stream)
}

/** Whether a part of the value is still unread. */
function isUnread(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  return value instanceof LongText || Symbol.asyncIterator in value || Object.values(value).some(isUnread)
}

type List = unknown[] | AsyncIterable<unknown>

function isList(value: object): value is List {
  return Array.isArray(value) || Symbol.asyncIterator in value
}

async function* write(value: unknown): AsyncGenerator<string> {
  if (!isUnread(value)) yield JSON.stringify(value)
  else if (value instanceof LongText) yield* writeText(value)
  else if (isList(value as object)) yield* writeList(value as List)
  else yield* writeMembers(value as object)
}

async function* writeText(text: LongText): AsyncGenerator<string> {
  yield '"'
  // A surrogate pair that is cut in two is written as two escapes, which mean the same.
  for await (const piece of text.pieces())
    for (let at = 0; at < piece.length; at += sliceLength)
      yield JSON.stringify(piece.slice(at, at + sliceLength)).slice(1, -1)
  yield '"'
}

async function* writeList(list: List): AsyncGenerator<string> {
  let mark = '['
  for await (const one of list) {
    yield mark
    yield* write(one)
    mark = ','
  }
  yield mark === '[' ? '[]' : ']'
}

async function* writeMembers(value: object): AsyncGenerator<string> {
  let mark = '{'
  for (const [name, member] of Object.entries(value)) {
    if (member === undefined) continue
    yield `${mark}${JSON.stringify(name)}:`
    yield* write(member)
    mark = ','
  }
  yield '}'
}
