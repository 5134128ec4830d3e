// The page that lists keys with their rights, expiry and last use, and that creates, rotates and revokes them.
import { useInfiniteQuery } from '@tanstack/react-query'
import { KeyRound, Plus } from 'lucide-react'
import { useState } from 'react'
import { Badge } from '../../parts/badge.tsx'
import { Card } from '../../parts/card.tsx'
import { Empty } from '../../parts/empty.tsx'
import { ErrorNote } from '../../parts/error-note.tsx'
import { Button } from '../../parts/form/button.tsx'
import { Segments } from '../../parts/form/segments.tsx'
import { LoadMore } from '../../parts/list/load-more.tsx'
import { SkeletonRows } from '../../parts/list/skeleton.tsx'
import { type Column, Table } from '../../parts/list/table.tsx'
import { Page } from '../../parts/page.tsx'
import { Time } from '../../parts/time.tsx'
import { useMay } from '../../shell/session.ts'
import { keys, scopeWords } from '../../texts/keys.ts'
import { CreateKey } from './create-key.tsx'
import { KeyDetails } from './key-details.tsx'
import { isInUse, keyTones, stateOf } from './key-state.ts'
import { type Key, keysQuery } from './queries.ts'
import { RevokeKey } from './revoke-key.tsx'
import { RotateKey } from './rotate-key.tsx'
import { TimeLeft } from './time-left.tsx'

type Open = { what: 'create' } | { what: 'show' | 'rotate' | 'revoke'; row: Key } | null

export function Keys() {
  const { data } = useInfiniteQuery(keysQuery)
  const hasRows = data?.pages.some((page) => page.keys.length > 0)
  const [open, setOpen] = useState<Open>(null)
  const close = () => setOpen(null)
  return (
    <Page
      title={keys.title}
      lead={keys.lead}
      actions={hasRows && <CreateButton onCreate={() => setOpen({ what: 'create' })} />}
    >
      <KeyTable onOpen={setOpen} />
      {open?.what === 'create' && <CreateKey onClose={close} />}
      {open?.what === 'show' && (
        <KeyDetails
          row={open.row}
          onClose={close}
          onRotate={() => setOpen({ what: 'rotate', row: open.row })}
          onRevoke={() => setOpen({ what: 'revoke', row: open.row })}
        />
      )}
      {open?.what === 'rotate' && <RotateKey old={open.row} onClose={close} />}
      {open?.what === 'revoke' && <RevokeKey row={open.row} onClose={close} />}
    </Page>
  )
}

function CreateButton({ onCreate }: { onCreate: () => void }) {
  if (!useMay('change')) return null
  return (
    <Button variant="primary" icon={Plus} onClick={onCreate}>
      {keys.create}
    </Button>
  )
}

function KeyTable({ onOpen }: { onOpen: (open: Open) => void }) {
  const query = useInfiniteQuery(keysQuery)
  const [shown, setShown] = useState<'inUse' | 'all'>('inUse')
  const all = query.data?.pages.flatMap((page) => page.keys) ?? []
  const rows = shown === 'all' ? all : all.filter((row) => isInUse(row, Date.now()))
  if (query.isPending) return <SkeletonRows />
  if (query.error && !query.data)
    return <ErrorNote error={query.error} onRetry={() => void query.refetch()} />
  if (all.length === 0) return <FirstKey onCreate={() => onOpen({ what: 'create' })} />
  const options = [
    { value: 'inUse', label: keys.inUse },
    { value: 'all', label: keys.all },
  ] as const
  return (
    <>
      <div className="mb-3 flex">
        <Segments label={keys.show} options={options} value={shown} onChange={setShown} />
      </div>
      <Card flush>
        {rows.length === 0 ? (
          <Empty icon={KeyRound} title={keys.noneInUse}>
            {keys.noneInUseWhat}
          </Empty>
        ) : (
          <Table
            label={keys.table}
            columns={columns}
            rows={rows}
            keyOf={({ id }) => id}
            onOpen={(row) => onOpen({ what: 'show', row })}
          />
        )}
        <LoadMore query={query} />
      </Card>
    </>
  )
}

function FirstKey({ onCreate }: { onCreate: () => void }) {
  return (
    <Empty icon={KeyRound} title={keys.empty} action={<CreateButton onCreate={onCreate} />}>
      {keys.emptyWhat}
    </Empty>
  )
}

const columns: Column<Key>[] = [
  {
    id: 'name',
    header: keys.columns.name,
    className: 'max-w-0 w-full sm:w-2/5',
    cell: (row) => <Name row={row} />,
  },
  {
    id: 'may',
    header: keys.columns.may,
    className: 'max-w-0 w-3/5',
    cell: (row) => <May row={row} />,
  },
  {
    id: 'used',
    header: keys.columns.lastUsed,
    className: 'whitespace-nowrap',
    cell: ({ lastUsedAt }) =>
      lastUsedAt ? <Time value={lastUsedAt} /> : <span className="text-faint">{keys.unused}</span>,
  },
  {
    id: 'expires',
    header: keys.columns.expires,
    className: 'whitespace-nowrap',
    cell: (row) => <Expiry row={row} />,
  },
]

function Name({ row: { name, kind } }: { row: Key }) {
  return (
    <span className="block min-w-0 text-left">
      <span className="block truncate font-medium">{name}</span>
      <span className="block truncate text-faint">{keys.kinds[kind]}</span>
    </span>
  )
}

function May({ row: { scopes, ...row } }: { row: Key }) {
  const words = scopes.includes('*')
    ? keys.everything
    : scopes.map((scope) => scopeWords[scope]?.label ?? scope).join(', ')
  const bounds = [
    row.inboxIds && keys.boundTo(row.inboxIds.length),
    row.allowedIps && keys.boundIps(row.allowedIps.length),
    row.sendMode === 'reply_only' && keys.sendModes.reply_only.label,
    row.allowedRecipientDomains && keys.boundDomains(row.allowedRecipientDomains.length),
  ].filter(Boolean)
  return (
    <span className="block min-w-0">
      <span className="block truncate" title={words}>
        {words}
      </span>
      {bounds.length > 0 && <span className="block truncate text-faint">{bounds.join(' · ')}</span>}
    </span>
  )
}

function Expiry({ row }: { row: Key }) {
  const state = stateOf(row, Date.now())
  if (state === 'revoked') return <Badge tone={keyTones.revoked}>{keys.states.revoked}</Badge>
  if (state === 'expired') return <Badge tone={keyTones.expired}>{keys.states.expired}</Badge>
  if (!row.expiresAt) return <span className="text-faint">{keys.never}</span>
  const left = <TimeLeft until={row.expiresAt} />
  return state === 'soon' ? <Badge tone={keyTones.soon}>{left}</Badge> : left
}
