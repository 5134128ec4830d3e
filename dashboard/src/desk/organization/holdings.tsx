// The members of an organization, and its domains and keys.
import { StateBadge } from '../../parts/badge.tsx'
import { CardTable } from '../../parts/list/card-table.tsx'
import type { Column } from '../../parts/list/table.tsx'
import { TwoLines } from '../../parts/list/two-lines.tsx'
import { Time } from '../../parts/time.tsx'
import { desk } from '../../texts/desk.ts'
import type { Organization } from '../client.ts'

const { organization: words } = desk
type Member = Organization['members'][number]
type Domain = Organization['domains'][number]
type Key = Organization['keys'][number]

const memberColumns: readonly Column<Member>[] = [
  {
    id: 'email',
    header: words.email,
    cell: ({ email, name }) => <TwoLines first={email} second={name} />,
  },
  {
    id: 'role',
    header: words.role,
    aside: true,
    cell: ({ role }) => <StateBadge state={role} />,
    className: 'w-28',
  },
  {
    id: 'seen',
    header: words.lastSeen,
    align: 'right',
    className: 'w-32',
    cell: ({ lastSeenAt }) => (lastSeenAt ? <Time value={lastSeenAt} /> : words.never),
  },
]

export function Members({ members }: { members: readonly Member[] }) {
  return (
    <CardTable
      label={words.members}
      none={words.membersNone}
      columns={memberColumns}
      rows={members}
      keyOf={({ email }) => email}
    />
  )
}

const domainColumns: readonly Column<Domain>[] = [
  {
    id: 'name',
    header: words.domain,
    cell: ({ name }) => <span className="font-medium break-all">{name}</span>,
  },
  {
    id: 'status',
    header: words.ownership,
    aside: true,
    cell: ({ status }) => <StateBadge state={status} />,
  },
  {
    id: 'out',
    header: words.outbound,
    cell: ({ outbound }) => <StateBadge state={outbound} />,
  },
  { id: 'in', header: words.inbound, cell: ({ inbound }) => <StateBadge state={inbound} /> },
]

export function Domains({ domains }: { domains: readonly Domain[] }) {
  return (
    <CardTable
      label={words.domains}
      none={words.domainsNone}
      columns={domainColumns}
      rows={domains}
      keyOf={({ id }) => id}
    />
  )
}

const keyColumns: readonly Column<Key>[] = [
  {
    id: 'name',
    header: words.key,
    cell: ({ name, scopes }) => (
      <TwoLines first={name} second={scopes.join(', ')} title={scopes.join(', ')} />
    ),
  },
  { id: 'kind', header: words.kind, cell: ({ kind }) => kind, className: 'w-28' },
  { id: 'until', header: words.until, cell: (key) => <Until of={key} />, align: 'right', className: 'w-32' },
]

function Until({ of: { expiresAt, revokedAt } }: { of: Key }) {
  if (revokedAt) return <StateBadge state="revoked" />
  if (!expiresAt) return words.forGood
  return Date.parse(expiresAt) < Date.now() ? <StateBadge state="expired" /> : <Time value={expiresAt} />
}

export function Keys({ keys }: { keys: readonly Key[] }) {
  return (
    <CardTable
      label={words.keys}
      none={words.keysNone}
      columns={keyColumns}
      rows={keys}
      keyOf={({ id }) => id}
    />
  )
}
