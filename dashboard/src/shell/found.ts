// The palette's results for a text: pages by name, inboxes by address or name, any object by id, and a search of all mail.
import { useQuery } from '@tanstack/react-query'
import { ApiError, api, read } from '../api/client.ts'
import { shell } from '../texts/shell.ts'
import { pageGroups } from './pages.ts'
import { useSession } from './session.ts'

export interface Found {
  id: string
  group: string
  label: string
  /** The kind or the owner of the result, next to its name. */
  note?: string
  to: string
  search?: { q: string }
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
const prefixed = /^(inb|thr|msg|whk)_[0-9a-f]+$/
const inboxCount = 6

export function useFound(text: string): { found: Found[]; isSearching: boolean } {
  const session = useSession()
  const wanted = text.trim().toLowerCase()
  const isId = uuid.test(wanted) || prefixed.test(wanted)
  const inboxes = useQuery({
    queryKey: ['palette', 'inboxes', wanted],
    queryFn: () => findInboxes(wanted),
    enabled: !isId,
    placeholderData: (before) => before,
  })
  const named = useQuery({
    queryKey: ['palette', 'id', wanted],
    queryFn: () => findById(wanted),
    enabled: isId,
  })
  const pages = pageGroups(session)
    .flat()
    .map(({ to, label }) => ({ id: to, to, label, group: shell.findPages }))
    .filter(({ label }) => label.toLowerCase().includes(wanted))
  // Inboxes of the text before are shown until the answer comes, but only those that still match.
  const matching = (inboxes.data ?? []).filter(({ label, note }) =>
    `${label} ${note}`.toLowerCase().includes(wanted),
  )
  const search = wanted ? [searchFor(text.trim())] : []
  const found = isId ? (named.data ?? []) : [...pages, ...matching, ...search]
  return { found, isSearching: (isId ? named : inboxes).isFetching }
}

function searchFor(words: string): Found {
  const label = shell.searchMail(words)
  return { id: 'search', group: shell.pages.mail, label, to: '/mail/all', search: { q: words } }
}

async function findInboxes(text: string): Promise<Found[]> {
  const query = { limit: inboxCount, ...(text ? { q: text } : {}) }
  const { inboxes } = await read(api.GET('/v1/inboxes', { params: { query } }))
  return inboxes.map(({ id, address, displayName }) => ({
    id,
    label: address,
    note: displayName,
    to: `/mail/${id}`,
    group: shell.findInboxes,
  }))
}

async function findById(id: string): Promise<Found[]> {
  const group = shell.findIds
  if (id.startsWith('inb_')) {
    const { address } = await read(api.GET('/v1/inboxes/{inboxId}', { params: { path: { inboxId: id } } }))
    return [{ id, group, label: address, note: shell.found.inbox, to: `/mail/${id}` }]
  }
  if (id.startsWith('thr_')) {
    const path = { threadId: id }
    const thread = await read(api.GET('/v1/threads/{threadId}', { params: { path, query: { limit: 1 } } }))
    return [
      { id, group, label: thread.subject, note: shell.found.thread, to: `/mail/${thread.inboxId}/${id}` },
    ]
  }
  if (id.startsWith('msg_')) {
    const { subject } = await read(
      api.GET('/v1/messages/{messageId}', { params: { path: { messageId: id } } }),
    )
    return [{ id, group, label: subject, note: shell.found.message, to: `/messages/${id}` }]
  }
  if (id.startsWith('whk_')) {
    const { url } = await read(api.GET('/v1/webhooks/{webhookId}', { params: { path: { webhookId: id } } }))
    return [{ id, group, label: url, note: shell.found.webhook, to: `/webhooks/${id}` }]
  }
  return findByUuid(id)
}

/** Submissions and domains have ids of the same form. */
async function findByUuid(id: string): Promise<Found[]> {
  const group = shell.findIds
  const [submission, domain] = await Promise.all([
    orNull(read(api.GET('/v1/submissions/{submissionId}', { params: { path: { submissionId: id } } }))),
    orNull(read(api.GET('/v1/domains/{domainId}', { params: { path: { domainId: id } } }))),
  ])
  return [
    ...(submission
      ? [{ id, group, label: submission.subject, note: shell.found.submission, to: `/sending/${id}` }]
      : []),
    ...(domain ? [{ id, group, label: domain.domain, note: shell.found.domain, to: `/domains/${id}` }] : []),
  ]
}

async function orNull<Value>(answer: Promise<Value>): Promise<Value | null> {
  try {
    return await answer
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return null
    throw error
  }
}
