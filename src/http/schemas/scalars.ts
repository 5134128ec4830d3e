// Small values that every schema uses: ids, times, texts, addresses and nullable values.
import Type, { type Static, type TSchema, type TUnsafe } from 'typebox'
import { patterns } from './patterns.ts'

/** A named schema in the OpenAPI document. `definition` is registered once. Every use refers to it by `ref`. */
export interface Component<Schema extends TSchema> {
  definition: Schema & { $id: string }
  ref: TUnsafe<Static<Schema>>
}

/** Names a schema. The name is its key under `components/schemas`. */
export function component<Schema extends TSchema>(name: string, schema: Schema): Component<Schema> {
  return {
    definition: Object.assign(schema, { $id: name }),
    ref: Type.Unsafe<Static<Schema>>({ $ref: `${name}#` }),
  }
}

/** A value or null, as `type: [type, 'null']`. With `anyOf`, the serializer would have to validate each value. */
export function nullable<Schema extends TSchema & { type: string }>(schema: Schema) {
  return Type.Unsafe<Static<Schema> | null>({ ...schema, type: [schema.type, 'null'] })
}

/** A string that is one of the words. */
export function oneOf<const Words extends string[]>(words: Words, description: string) {
  return Type.Unsafe<Words[number]>({ type: 'string', enum: words, description })
}

/** One of the words, or null. Its TypeScript type is any string: `enum` only informs readers of the document. */
export function oneOfOrNull(words: readonly string[], description: string) {
  return Type.Unsafe<string | null>({ type: ['string', 'null'], enum: [...words, null], description })
}

/** A string that matches one of the patterns. */
export function patterned(name: keyof typeof patterns, options: Record<string, unknown> = {}) {
  return Type.String({ pattern: patterns[name][0], ...options })
}

export const InboxIdText = patterned('inboxId', {
  description: 'An inbox id.',
  examples: ['inb_0199a1b23c4d5e6f708192a3'],
})
export const ThreadIdText = patterned('threadId', {
  description: 'A thread id.',
  examples: ['thr_0199a1b23c4d5e6f708192a3'],
})
export const MessageIdText = patterned('messageId', {
  description: 'A message id.',
  examples: ['msg_0199a1b23c4d5e6f708192a3'],
})
export const AttachmentIdText = patterned('attachmentId', {
  description: 'An attachment id: its message and its number.',
  examples: ['att_0199a1b23c4d5e6f708192a3_1'],
})
export const WebhookIdText = patterned('webhookId', {
  description: 'A webhook id.',
  examples: ['whk_0199a1b23c4d5e6f708192a3'],
})
export const Uuid = patterned('uuid', {
  format: 'uuid',
  description: 'A UUID.',
  examples: ['0199a1b2-5e6f-7081-92a3-3e4f5a6b7c8d'],
})
export const Email = Type.String({
  format: 'idn-email',
  maxLength: 320,
  description: 'An email address. Internationalized addresses (RFC 6531) are allowed.',
  examples: ['ada@example.com'],
})
export const Time = patterned('writtenTime', {
  format: 'date-time',
  description: 'ISO 8601, UTC, milliseconds.',
  examples: ['2026-11-21T09:00:00.000Z'],
})
export const GivenTime = patterned('time', { format: 'date-time', examples: ['2026-11-21T09:00:00Z'] })
/** The cursor of the next page. */
export const NextCursor = nullable(
  Type.String({
    minLength: 1,
    description: 'Pass it as `cursor` for the next page. Null: this is the last page.',
  }),
)
export const Count = Type.Integer({ minimum: 0 })

const failureCodes = [
  ...['hard_bounce', 'soft_bounce_expired', 'policy_rejected', 'suppressed', 'domain_not_found', 'null_mx'],
  ...['tls_required', 'inbox_deleted', 'cancelled', 'internal_error'],
]
export const failureCode = Type.Unsafe<string | null>({
  ...oneOfOrNull(failureCodes, 'Why the message was not delivered to all recipients. Null: no failure.'),
  examples: ['hard_bounce'],
})

const metadataValue = { type: ['string', 'number', 'boolean', 'null'] }
export type Metadata = Record<string, string | number | boolean | null>

/** Metadata as answers show it. */
export const MetadataView = Type.Unsafe<Metadata>({
  type: 'object',
  additionalProperties: metadataValue,
  description: 'The metadata of the send. Empty if none was given, and for received mail.',
  examples: [{ booking: 4711 }],
})

/** Metadata as requests may give it. */
export const MetadataGiven = Type.Unsafe<Metadata>({
  type: 'object',
  maxProperties: 50,
  propertyNames: { type: 'string', pattern: patterns.metadataKey[0] },
  additionalProperties: {
    ...metadataValue,
    maxLength: 500,
    // RFC 8259 6: beyond these bounds the stored number could differ from the given one.
    minimum: Number.MIN_SAFE_INTEGER,
    maximum: Number.MAX_SAFE_INTEGER,
  },
  description:
    'Up to 50 values of your own: strings of up to 500 characters, numbers between ±(2^53 − 1), booleans or null.',
  examples: [{ order: '4711' }],
})

/** The body or query of an operation that takes none. */
export const Nothing = Type.Object({}, { additionalProperties: false })
