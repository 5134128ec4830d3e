// Makes the OpenAPI document smaller: repeated small schemas and parameters get a name and become references.
import {
  AttachmentIdText,
  Email,
  failureCode,
  InboxIdText,
  MessageIdText,
  MetadataGiven,
  NextCursor,
  nullable,
  ThreadIdText,
  Time,
  Uuid,
  WebhookIdText,
} from '../schemas/scalars.ts'
import { EventTypeName } from '../schemas/webhook.ts'
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
  EventType: EventTypeName,
}
const names = new Map(Object.entries(named).map(([name, schema]) => [JSON.stringify(schema), name]))

/** Replaces equal small schemas by references. Only schemas that are referred to get their name. */
export function shareSchemas(document: OpenApiDocument): void {
  const schemas = document.components.schemas ?? {}
  const used = new Set<string>()
  const share = (value: unknown): unknown => {
    if (value === null || typeof value !== 'object') return value
    if (Array.isArray(value)) return value.map(share)
    const name = names.get(JSON.stringify(value))
    if (name !== undefined) {
      used.add(name)
      return { $ref: `#/components/schemas/${name}` }
    }
    const members = Object.entries(value)
    return Object.fromEntries(members.map(([key, member]) => [key, isValue(key) ? member : share(member)]))
  }
  const shared = share(schemas) as typeof schemas
  document.paths = share(document.paths) as OpenApiDocument['paths']
  const added = Object.entries(named).filter(([name]) => used.has(name))
  document.components.schemas = { ...shared, ...Object.fromEntries(added) }
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
    const name = componentName(parameter!.name)
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

/** Converts `idempotency-key` to `IdempotencyKey`, like the name of a type. */
function componentName(name: string): string {
  return name.replace(/(?:^|-)([a-z])/g, (_, letter: string) => letter.toUpperCase())
}
