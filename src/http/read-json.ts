// Reads a request's body: bounded by the caller's own limits, UTF-8, JSON, and nothing in it that hides.
import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import type { FastifyRequest } from 'fastify'
import { RequestFault } from './errors.ts'

const mebibyte = 1 << 20

/** The largest body of a caller: room for base64 and escapes around its message content, so that 413 names the content. */
export function bodyLimitBytes(messageContentBytes: number): number {
  return Math.ceil(messageContentBytes * 1.5) + mebibyte
}

type Done = (fault: Error | null, body?: unknown) => void

/**
 * Reads the JSON body of an operation that takes one. Faults are `invalid_json`, `invalid_request` (NUL, lone
 * surrogates, `__proto__`) and `payload_too_large`.
 */
export function readJson(request: FastifyRequest, payload: IncomingMessage, done: Done): void {
  if (!takesBody(request)) {
    done(null)
    return
  }
  const encoding = request.headers['content-encoding']
  if (encoding !== undefined && encoding !== 'identity')
    throw new RequestFault('invalid_json', 'The body must not be compressed.')
  readBytes(payload, bodyLimitBytes(request.caller.limits.messageContentBytes), (fault, bytes) => {
    if (!bytes) {
      done(fault)
      return
    }
    let value: unknown
    try {
      value = parseJson(bytes)
    } catch (error) {
      done(error as Error)
      return
    }
    done(null, value)
  })
}

/** A body that is not JSON: refused where one is expected, left alone elsewhere. */
export async function refuseOtherTypes(request: FastifyRequest): Promise<undefined> {
  if (takesBody(request)) throw new RequestFault('invalid_json', 'Send content-type: application/json.')
}

function takesBody(request: FastifyRequest): boolean {
  return !request.is404 && request.routeOptions.schema?.body !== undefined
}

/**
 * All bytes up to the limit. What is over it is read to its end, but not kept, as long again as the limit: an answer
 * sent before would be lost to most clients, who read only once they have written.
 */
function readBytes(
  payload: IncomingMessage,
  limitBytes: number,
  done: (fault: Error | null, bytes?: Buffer) => void,
): void {
  let chunks: Buffer[] = []
  let sizeBytes = 0
  let isDone = false
  const end = (fault: Error | null, bytes?: Buffer) => {
    if (isDone) return
    isDone = true
    done(fault, bytes)
  }
  const tooLarge = () =>
    new RequestFault('payload_too_large', `The request body is larger than ${limitBytes} bytes.`)
  if (Number(payload.headers['content-length']) > 2 * limitBytes) {
    end(tooLarge())
    return
  }
  payload.on('data', (chunk: Buffer) => {
    sizeBytes += chunk.length
    if (sizeBytes <= limitBytes) chunks.push(chunk)
    else chunks = []
    if (sizeBytes > 2 * limitBytes) end(tooLarge())
  })
  payload.on('end', () => {
    if (sizeBytes > limitBytes) end(tooLarge())
    else end(null, chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, sizeBytes))
  })
  // The caller went away; nobody reads this answer.
  payload.on('error', () => end(new RequestFault('invalid_json', 'The body ended too early.')))
}

/** The value that the bytes are JSON for, and free of what could not be stored or would reach a prototype. */
export function parseJson(bytes: Buffer): unknown {
  // RFC 8259 8.1: JSON is UTF-8; a byte order mark is not JSON, and JSON.parse refuses it.
  if (!isUtf8(bytes)) throw new RequestFault('invalid_json', 'The body must be UTF-8.')
  const text = bytes.toString()
  const value = parse(text)
  // Raw NUL and surrogates cannot be here any more: only an escape hides them, or a prototype's name.
  if (text.includes('\\u') || text.includes('__proto__')) refuseHidden(value, '', 0)
  return value
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    if (text === '') throw new RequestFault('invalid_json', 'The body is empty: it must be JSON.')
    // The parser's words quote the body; only the place is taken from them, where they end with one.
    const place = / \((line \d+ column \d+)\)$/.exec((error as Error).message)?.[1]
    throw new RequestFault('invalid_json', `The body is not valid JSON${place ? ` at ${place}` : ''}.`)
  }
}

// Deeper than any schema; past it nothing would be taken anyway.
const maxDepth = 32

function refuseHidden(value: unknown, pointer: string, depth: number): void {
  if (typeof value === 'string') refuseText(value, pointer)
  if (value === null || typeof value !== 'object') return
  if (depth === maxDepth)
    throw new RequestFault('invalid_json', `The body is nested more than ${maxDepth} deep.`)
  for (const [name, member] of Object.entries(value)) {
    refuseText(name, pointer)
    // Prototype pollution: whoever copies such an object property by property changes the copy's prototype.
    if (name === '__proto__')
      throw new RequestFault('invalid_request', `${pointer}/__proto__ is not known here`)
    refuseHidden(member, depth < 4 ? `${pointer}/${name.slice(0, 50)}` : pointer, depth + 1)
  }
}

function refuseText(text: string, pointer: string): void {
  if (text.includes('\0'))
    throw new RequestFault('invalid_request', `${pointer || 'a name'} must not contain NUL`)
  if (!text.isWellFormed())
    throw new RequestFault('invalid_request', `${pointer || 'a name'} must not contain lone surrogates`)
}
