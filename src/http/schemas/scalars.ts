// The small values that every schema is made of: ids, times, texts, addresses and what may be null.
import Type, { type Static, type TSchema, type TUnsafe } from 'typebox'

/** A schema of its own name in the OpenAPI document: its definition is registered once, `ref` stands wherever it is used. */
export interface Component<Schema extends TSchema> {
  definition: Schema & { $id: string }
  ref: TUnsafe<Static<Schema>>
}

/** Names a schema; the name is its place under `components/schemas`. */
export function component<Schema extends TSchema>(name: string, schema: Schema): Component<Schema> {
  return {
    definition: Object.assign(schema, { $id: name }),
    ref: Type.Unsafe<Static<Schema>>({ $ref: `${name}#` }),
  }
}

/** A value, or null. One type of two names: `anyOf` would cost the serializer a validation for each value. */
export function nullable<Schema extends TSchema & { type: string }>(schema: Schema) {
  return Type.Unsafe<Static<Schema> | null>({ ...schema, type: [schema.type, 'null'] })
}

/** One of the words. */
export function oneOf<const Words extends string[]>(words: Words, description: string) {
  return Type.Unsafe<Words[number]>({ type: 'string', enum: words, description })
}

/** One of the words, or null. The service says which; a type of the words themselves is for who reads the document. */
export function oneOfOrNull(words: readonly string[], description: string) {
  return Type.Unsafe<string | null>({ type: ['string', 'null'], enum: [...words, null], description })
}

/** The patterns of values, each with the words that tell a person what was expected. */
const patterns = {
  inboxId: ['^inb_[a-f0-9]{24}$', 'must be an inbox id: inb_ and 24 lowercase hexadecimal digits'],
  threadId: ['^thr_[a-f0-9]{24}$', 'must be a thread id: thr_ and 24 lowercase hexadecimal digits'],
  messageId: ['^msg_[a-f0-9]{24}$', 'must be a message id: msg_ and 24 lowercase hexadecimal digits'],
  messageIdOrZero: [
    '^(?:0|msg_[a-f0-9]{24})$',
    'must be a message id, msg_ and 24 lowercase hexadecimal digits, or 0',
  ],
  attachmentId: [
    '^att_[a-f0-9]{24}_[1-9][0-9]{0,2}$',
    'must be an attachment id: att_, 24 lowercase hexadecimal digits, _ and a number up to 999',
  ],
  webhookId: ['^whk_[a-f0-9]{24}$', 'must be a webhook id: whk_ and 24 lowercase hexadecimal digits'],
  uuid: ['^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$', 'must be a UUID'],
  localPart: [
    '^(?!.*\\.\\.)[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?$',
    'must be 1 to 64 of a-z, 0-9, dot, hyphen and underscore, with a letter or digit at both ends and no two dots in a row',
  ],
  // Line breaks would begin a header field of the sender's choice.
  oneLine: ['^\\P{Cc}*$', 'must be one line without control characters'],
  // The first letter or digit is found without looking back.
  query: ['^[^\\p{L}\\p{N}\\p{Cc}]*[\\p{L}\\p{N}]\\P{Cc}*$', 'must be one line with a word to look for'],
  headerValue: ['^[^\\r\\n]*$', 'must be one line'],
  // What is invisible and what must be visible are disjoint, so that the match is linear in the text.
  subject: [
    '^[\\p{Z}\\p{Cf}]*[^\\p{Z}\\p{Cf}\\p{Cc}]\\P{Cc}*$',
    'must be one line without control characters and with at least one visible character',
  ],
  filename: ['^[^\\p{Cc}/\\\\]+$', 'must be a file name without slashes and control characters'],
  contentType: [
    "^[!#$%&'*+.^_`{|}~0-9A-Za-z-]{1,70}/[!#$%&'*+.^_`{|}~0-9A-Za-z-]{1,70}(?: *; *[!#$%&'*+.^_`{|}~0-9A-Za-z-]{1,70}=(?:[!#$%&'*+.^_`{|}~0-9A-Za-z-]{1,70}|\"[ !#-\\[\\]-~]{0,70}\"))*$",
    'must be a media type such as text/csv or text/calendar; method=REQUEST',
  ],
  contentId: ['^[!-;=?-~]+$', 'must be a content id without angle brackets and spaces'],
  metadataKey: ['^[A-Za-z0-9_.:-]{1,40}$', 'must have a name of 1 to 40 characters A-Z, a-z, 0-9, _ . : -'],
  // Without the second 60 and the spellings that RFC 3339 allows and Date does not know.
  time: [
    '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:[0-5]\\d(?:\\.\\d{1,9})?(?:Z|[+-]\\d\\d:\\d\\d)$',
    'must be a time with its zone, such as 2026-11-21T09:00:00Z',
  ],
  idempotencyKey: ['^[A-Za-z0-9._:-]+$', 'must be 8 to 200 characters A-Z, a-z, 0-9, . _ : -'],
} as const

const expectations = new Map<string, string>(
  Object.values(patterns).map(([pattern, words]) => [pattern, words]),
)

/** What a value that breaks this pattern should have been, in words. */
export function describePattern(pattern: string): string {
  return expectations.get(pattern) ?? `must match ${pattern}`
}

/** A string by one of the patterns. */
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
  description: 'An attachment id: its message’s, and its number there.',
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
  description: 'An e-mail address; internationalized ones (RFC 6531) are addresses.',
  examples: ['ada@example.com'],
})
export const Time = Type.String({
  format: 'date-time',
  pattern: '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{3}Z$',
  description: 'ISO 8601, UTC, milliseconds.',
  examples: ['2026-11-21T09:00:00.000Z'],
})
export const GivenTime = patterned('time', { format: 'date-time', examples: ['2026-11-21T09:00:00Z'] })
/** Where a list goes on. */
export const NextCursor = nullable(
  Type.String({ description: 'Pass it as `cursor` for the next page; null: this is the last one.' }),
)
export const Count = Type.Integer({ minimum: 0 })

const failureCodes = [
  ...['hard_bounce', 'soft_bounce_expired', 'policy_rejected', 'suppressed', 'domain_not_found', 'null_mx'],
  ...['tls_required', 'inbox_deleted', 'cancelled', 'internal_error'],
]
export const failureCode = oneOfOrNull(
  failureCodes,
  'Why it was not delivered to everyone; null: no such reason.',
)

const metadataValue = { type: ['string', 'number', 'boolean', 'null'] }
export type Metadata = Record<string, string | number | boolean | null>

/** Metadata as it is shown. */
export const MetadataView = Type.Unsafe<Metadata>({
  type: 'object',
  additionalProperties: metadataValue,
  description: 'What was given with the send; empty where nothing was, and on received mail.',
})

/** Metadata as it may be given. */
export const MetadataGiven = Type.Unsafe<Metadata>({
  type: 'object',
  maxProperties: 50,
  propertyNames: { pattern: patterns.metadataKey[0] },
  additionalProperties: {
    ...metadataValue,
    maxLength: 500,
    // RFC 8259 6: past these, what is stored would be another number.
    minimum: Number.MIN_SAFE_INTEGER,
    maximum: Number.MAX_SAFE_INTEGER,
  },
  description:
    'At most 50 values of your own: strings of up to 500 characters, numbers between ±(2^53 − 1) with up to 17 digits, booleans or null.',
})

/** The body or query of an operation that takes none. */
export const Nothing = Type.Object({}, { additionalProperties: false })
