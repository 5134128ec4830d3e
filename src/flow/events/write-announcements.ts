// Writes the events of webhooks and streams from stored rows: type, timestamp and data as JSON.
import type { InboxId, OrganizationId } from '../../base/ids.ts'
import type { Queryable } from '../../postgres/db.ts'
import { type EventRow, findEvents } from '../../store/events/events.ts'
import type { OutboxItem } from '../../store/events/outbox.ts'
import { findMessagesCut, type MessageRow } from '../../store/mailbox/messages.ts'
import { findSubmissions, type SubmissionRow } from '../../store/sending/submissions.ts'

/** The API's views of the subjects of events. */
export interface Presenters {
  message(row: MessageRow): { attachments?: { id: string }[] } & object
  submission(row: SubmissionRow): object
  event(row: EventRow, submissionId: string): object
  /** A domain of the organization, or null if it no longer exists. */
  domain(organizationId: OrganizationId, id: string): Promise<object | null>
}

export interface Announced {
  organizationId: OrganizationId
  item: OutboxItem
  announcedAt: Date
}

type Deps = { db: Queryable; present: Presenters }

/** Longer texts are cut. */
const textBytes = 64 * 1024

/** The content of an event. */
export interface Announcement {
  json: string
  /** The inbox of the event. Null if it is not about an inbox. */
  inboxId: InboxId | null
}

/** Writes the events in order, with a few look-ups for all of them. Returns null for an event whose subject was deleted. */
export async function writeAnnouncements(
  deps: Deps,
  announced: readonly Announced[],
): Promise<(Announcement | null)[]> {
  const submissions = await loadSubmissions(deps.db, announced)
  const events = await loadEvents(deps.db, announced)
  const messages = await loadMessages(deps.db, announced, [...submissions.values()])
  const written: (Announcement | null)[] = []
  for (const entry of announced) written.push(await write(deps, entry, { submissions, events, messages }))
  return written
}

interface Loaded {
  submissions: Map<string, SubmissionRow>
  events: Map<string, EventRow>
  messages: Map<string, MessageRow<string>>
}

async function loadSubmissions(
  db: Queryable,
  announced: readonly Announced[],
): Promise<Loaded['submissions']> {
  const ids = unique(announced.map(({ item }) => item.submission))
  const rows = ids.length > 0 ? await findSubmissions(db, ids) : []
  return new Map(rows.map((row) => [row.id, row]))
}

async function loadEvents(db: Queryable, announced: readonly Announced[]): Promise<Loaded['events']> {
  const wanted = announced.flatMap(({ item: { submission, event } }) =>
    submission && event ? { submission, seq: event } : [],
  )
  const rows = wanted.length > 0 ? await findEvents(db, wanted) : []
  return new Map(rows.map((row) => [`${row.submissionId} ${row.seq}`, row]))
}

async function loadMessages(
  db: Queryable,
  announced: readonly Announced[],
  submissions: SubmissionRow[],
): Promise<Loaded['messages']> {
  const ids = unique([
    ...announced.map(({ item }) => item.message),
    ...submissions.map(({ messageId }) => messageId),
  ])
  // One character more than is shown, so that a cut is detected.
  const rows = ids.length > 0 ? await findMessagesCut(db, ids, textBytes + 1) : []
  return new Map(rows.map((row) => [row.id, row]))
}

function unique(ids: (string | null | undefined)[]): string[] {
  return [...new Set(ids.filter((id) => typeof id === 'string'))]
}

async function write(deps: Deps, announced: Announced, loaded: Loaded): Promise<Announcement | null> {
  const { item, announcedAt } = announced
  const found = item.submission
    ? describeSubmission(deps, announced, loaded)
    : { at: announcedAt, content: await describeOther(deps, announced, loaded) }
  if (!found?.content) return null
  const json = JSON.stringify({ type: item.type, timestamp: found.at.toISOString(), data: found.content })
  return { json, inboxId: inboxOf(item, loaded) }
}

function inboxOf({ submission, message }: OutboxItem, { submissions, messages }: Loaded): InboxId | null {
  if (submission !== undefined) return submissions.get(submission)?.inboxId ?? null
  return (message !== undefined && messages.get(message)?.inboxId) || null
}

function describeSubmission(
  { present }: Deps,
  { organizationId, item }: Announced,
  { submissions, events, messages }: Loaded,
): { at: Date; content: object } | null {
  const submission = submissions.get(item.submission!)
  if (submission?.organizationId !== organizationId) return null
  const event = item.event ? events.get(`${submission.id} ${item.event}`) : acceptance(submission)
  if (!event) return null
  const message = messages.get(submission.messageId ?? '')
  const content = {
    ...(message ? showMessage(present, message) : { message: null }),
    submission: present.submission(submission),
    event: present.event(event, submission.id),
  }
  return { at: event.at, content }
}

/** Returns a submission's first event, `accepted`. It has no row of its own, so it is made from the submission. */
function acceptance({ id, createdAt }: SubmissionRow): EventRow {
  const unknown = { recipient: null, attempt: null, remote: null, response: null, classification: null }
  return {
    ...unknown,
    enhancedStatus: null,
    failureCode: null,
    id,
    seq: 0,
    ordinal: 0,
    type: 'accepted',
    at: createdAt,
  }
}

async function describeOther(
  { present }: Deps,
  { organizationId, item }: Announced,
  { messages }: Loaded,
): Promise<object | null> {
  if (item.content) return item.content
  if (item.type === 'webhook.test') return { webhookId: item.webhook }
  if (item.domain) {
    const domain = await present.domain(organizationId, item.domain)
    return domain && { domain }
  }
  const message = messages.get(item.message ?? '')
  if (message?.organizationId !== organizationId) return null
  if (item.type === 'message.received') return showMessage(present, message)
  const attachment = present.message(message).attachments?.find(({ id }) => id === item.attachment)
  return attachment ? { messageId: message.id, inboxId: message.inboxId, attachment } : null
}

function showMessage(present: Presenters, row: MessageRow<string>): { message: object; truncated?: true } {
  const text = cut(row.text) ?? ''
  const [html, extractedText] = [cut(row.html), cut(row.extractedText)]
  const isCut = text !== row.text || html !== row.html || extractedText !== row.extractedText
  const message = present.message({ ...row, text, html, extractedText })
  return { message, ...(isCut && { truncated: true as const }) }
}

/** Returns the first 64 KiB of the text, in whole characters. */
function cut(text: string | null): string | null {
  if (text === null || text.length * 3 <= textBytes) return text
  const bytes = Buffer.from(text)
  if (bytes.length <= textBytes) return text
  let end = textBytes
  while ((bytes[end]! & 0xc0) === 0x80) end--
  return bytes.toString('utf8', 0, end)
}
