// The audit log: actor, action, time and origin of each change, newest first, with filters and a download.

import { infiniteQueryOptions, useInfiniteQuery } from '@tanstack/react-query'
import { Download, EyeOff, ScrollText } from 'lucide-react'
import { useDeferredValue, useState } from 'react'
import { api, read } from '../../api/client.ts'
import { paged } from '../../api/paged.ts'
import { Card } from '../../parts/card.tsx'
import { DownloadLink } from '../../parts/download-link.tsx'
import { Empty } from '../../parts/empty.tsx'
import { ErrorNote } from '../../parts/error-note.tsx'
import { Select, TextField } from '../../parts/form/field.tsx'
import { LoadMore } from '../../parts/list/load-more.tsx'
import { SkeletonRows } from '../../parts/list/skeleton.tsx'
import { Page } from '../../parts/page.tsx'
import { useMay } from '../../shell/session.ts'
import { audit } from '../../texts/members.ts'
import { type AuditEntry, AuditRow } from './audit-row.tsx'

type Kind = keyof typeof audit.kinds

const pageSize = 100
/** The prefixes of the actions of each kind. */
const kinds: Record<Kind, readonly string[]> = {
  all: [''],
  key: ['key.'],
  member: ['member.'],
  domain: ['domain.'],
  webhook: ['webhook.'],
  mail: ['inbox.', 'message.', 'suppression.'],
  account: ['sessions.', 'password.', 'passkey.', 'identity.'],
  organization: ['organization.', 'access.'],
}

const auditQuery = infiniteQueryOptions({
  queryKey: ['audit'],
  queryFn: ({ pageParam }) => {
    const query = { limit: pageSize, cursor: pageParam }
    return read(api.GET('/v1/audit', { params: { query } }))
  },
  ...paged,
})

export function Audit() {
  const isAllowed = useMay('change')
  const file = (
    <DownloadLink href="/app/v1/audit.csv" icon={Download}>
      {audit.export}
    </DownloadLink>
  )
  return (
    <Page title={audit.title} lead={audit.lead} actions={isAllowed && file}>
      {isAllowed ? <AuditLog /> : <NotForViewers />}
    </Page>
  )
}

function NotForViewers() {
  return (
    <Empty icon={EyeOff} title={audit.viewer}>
      {audit.viewerWhat}
    </Empty>
  )
}

function AuditLog() {
  const query = useInfiniteQuery(auditQuery)
  const [kind, setKind] = useState<Kind>('all')
  const [text, setText] = useState('')
  const wanted = useDeferredValue(text.trim().toLowerCase())
  const all = query.data?.pages.flatMap(({ entries }) => entries) ?? []
  const rows = all.filter((entry) => fits(entry, kind, wanted))
  if (query.isPending) return <SkeletonRows />
  if (query.error && !query.data)
    return <ErrorNote error={query.error} onRetry={() => void query.refetch()} />
  if (all.length === 0)
    return (
      <Empty icon={ScrollText} title={audit.empty}>
        {audit.emptyWhat}
      </Empty>
    )
  return (
    <>
      <Filters kind={kind} setKind={setKind} text={text} setText={setText} />
      <Card flush>
        {rows.length === 0 ? (
          <Empty icon={ScrollText} title={audit.none}>
            {audit.noneWhat}
          </Empty>
        ) : (
          <ul aria-label={audit.list}>
            {rows.map((entry) => (
              <AuditRow key={entry.id} entry={entry} />
            ))}
          </ul>
        )}
        <LoadMore query={query} />
      </Card>
      <p role="status" className="mt-2 text-sm text-faint">
        {audit.searched(all.length)}
      </p>
    </>
  )
}

function fits({ action, actor, subject, detail, ip }: AuditEntry, kind: Kind, wanted: string): boolean {
  if (!kinds[kind].some((start) => action.startsWith(start))) return false
  const all = [actor, action, subject, ip ?? '', JSON.stringify(detail)].join(' ').toLowerCase()
  return all.includes(wanted)
}

interface FiltersProps {
  kind: Kind
  setKind: (kind: Kind) => void
  text: string
  setText: (text: string) => void
}

function Filters({ kind, setKind, text, setText }: FiltersProps) {
  const options = Object.entries(audit.kinds).map(([value, label]) => ({ value, label }))
  return (
    <div className="mb-3 grid gap-2 sm:flex">
      <div className="sm:w-44">
        <Select
          label={audit.filter}
          labelHidden
          options={options}
          value={kind}
          onChange={(event) => setKind(event.target.value as Kind)}
        />
      </div>
      <div className="sm:w-72">
        <TextField
          label={audit.filterWho}
          labelHidden
          type="search"
          placeholder={audit.filterHint}
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
      </div>
    </div>
  )
}
