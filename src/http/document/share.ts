// Makes the OpenAPI document smaller: repeated small schemas and parameters get a name and become references.
import { AuthenticationResult, Purpose } from '../schemas/message.ts'
import { SendLimits } from '../schemas/profile.ts'
import {
  AttachmentIdText,
  Email,
  failureCode,
  InboxIdText,
  MessageIdText,
  MetadataGiven,
  MetadataView,
  NextCursor,
  nullable,
  ThreadIdText,
  Time,
  Uuid,
  WebhookIdText,
} from '../schemas/scalars.ts'
import { GivenPurpose } from '../schemas/send.ts'
import { Recipient, SubmissionStatus } from '../schemas/submission.ts'
import { EventTypeName, WebhookStatus } from '../schemas/webhook.ts'
import { type OpenApiDocument, operationsOf } from './document.ts'

/** Schemas and the names that replace them. */
const named: Readonly<Record<string, object>> = {
  Timestamp: Time,
  TimestampOrNull: nullable(Time),
  NextCursor,
  Uuid,
  EmailAddress: Email,
  InboxId: InboxIdText,
  ThreadId: ThreadIdText,
  MessageId: MessageIdText,
  AttachmentId: AttachmentIdText,
  WebhookId: WebhookIdText,
  FailureCode: failureCode,
  Metadata: MetadataGiven,
  StoredMetadata: MetadataView,
  EventType: EventTypeName,
  Purpose,
  GivenPurpose,
  AuthenticationResult,
  SubmissionStatus,
  SubmissionRecipient: Recipient,
  WebhookStatus,
  SendLimits,
}
const names = new Map(Object.entries(named).map(([name, schema]) => [keyOf(schema), name]))
if (names.size < Object.keys(named).length) throw new Error('two shared schemas are equal')

/**
 * Replaces equal small schemas by references. A schema that differs only in its description keeps it next to the
 * reference. Only schemas that are referred to get their name.
 */
export function shareSchemas(document: OpenApiDocument): void {
  const added: Record<string, object> = {}
  const share = (value: unknown): unknown => {
    if (value === null || typeof value !== 'object') return value
    if (Array.isArray(value)) return value.map(share)
    const name = names.get(keyOf(value))
    if (name === undefined) return shareMembers(value)
    if (!(name in added)) {
      added[name] = {}
      added[name] = shareMembers(named[name]!)
    }
    return referTo(name, value)
  }
  const shareMembers = (value: object): object => {
    const members = Object.entries(value)
    return Object.fromEntries(members.map(([key, member]) => [key, isValue(key) ? member : share(member)]))
  }
  const shared = share(document.components.schemas ?? {}) as object
  document.paths = share(document.paths) as OpenApiDocument['paths']
  document.components.schemas = { ...shared, ...added }
}

/** Equal for schemas that accept the same values and have the same examples. */
function keyOf(schema: object): string {
  return JSON.stringify({ ...schema, description: undefined })
}

function referTo(name: string, { description }: { description?: string }): object {
  const $ref = `#/components/schemas/${name}`
  const isOwn =
    description !== undefined && description !== (named[name] as { description?: string }).description
  return isOwn ? { $ref, description } : { $ref }
}

/** Whether the key holds a value, not a schema. */
function isValue(key: string): boolean {
  return key === 'example' || key === 'examples' || key === 'enum' || key === 'default'
}

/** Turns parameters that several operations share into components, named after the parameter. */
export function shareParameters(document: OpenApiDocument): OpenApiDocument {
  const operations = operationsOf(document.paths, document.webhooks ?? {})
  const all = operations.flatMap(({ parameters = [] }) => parameters)
  const alike = Map.groupBy(all, (parameter) => JSON.stringify(parameter))
  const components = new Map<string, object>()
  const references = new Map<string, { $ref: string }>()
  for (const [written, [parameter, ...others]] of alike) {
    const name = componentName(parameter!)
    // A different parameter with the same name stays inline.
    if (others.length === 0 || components.has(name)) continue
    components.set(name, parameter!)
    references.set(written, { $ref: `#/components/parameters/${name}` })
  }
  for (const operation of operations)
    if (operation.parameters)
      operation.parameters = operation.parameters.map(
        (parameter) => (references.get(JSON.stringify(parameter)) as never) ?? parameter,
      )
  document.components.parameters = Object.fromEntries(components)
  return document
}

/** Names `idempotency-key` in a header `IdempotencyKeyInHeader`: like a type, and unlike the name of any schema. */
function componentName({ name, in: location }: { name: string; in: string }): string {
  return [...name.split('-'), 'in', location].map((word) => word[0]!.toUpperCase() + word.slice(1)).join('')
}
