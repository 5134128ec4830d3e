// The members, with an owner's actions on each, and with leaving for everyone.
import { Ellipsis, LogOut, UserCog, UserMinus } from 'lucide-react'
import { useState } from 'react'
import { StateBadge } from '../../parts/badge.tsx'
import { Card } from '../../parts/card.tsx'
import { IconButton } from '../../parts/form/button.tsx'
import { Menu } from '../../parts/form/menu.tsx'
import type { MenuItem } from '../../parts/form/open-menu.tsx'
import { type Column, Table } from '../../parts/list/table.tsx'
import { Time } from '../../parts/time.tsx'
import { useMay, useSession } from '../../shell/session.ts'
import { members as words } from '../../texts/members.ts'
import { ChangeRole } from './change-role.tsx'
import type { Member } from './queries.ts'
import { RemoveMember } from './remove-member.tsx'

type Open = { what: 'role' | 'remove'; member: Member } | null

export function MemberTable({ members }: { members: readonly Member[] }) {
  const [open, setOpen] = useState<Open>(null)
  const close = () => setOpen(null)
  const ownerCount = members.filter(({ role }) => role === 'owner').length
  const actions: Column<Member> = {
    id: 'actions',
    header: words.columns.actions,
    headerHidden: true,
    className: 'w-12',
    cell: (member) => (
      <Actions member={member} isLastOwner={member.role === 'owner' && ownerCount === 1} onOpen={setOpen} />
    ),
  }
  return (
    <Card flush>
      <Table
        label={words.table}
        columns={[...columns, actions]}
        rows={members}
        keyOf={({ personId }) => personId}
      />
      {open?.what === 'role' && <ChangeRole member={open.member} onClose={close} />}
      {open?.what === 'remove' && <RemoveMember member={open.member} onClose={close} />}
    </Card>
  )
}

const columns: Column<Member>[] = [
  {
    id: 'who',
    header: words.columns.who,
    className: 'max-w-0 w-full',
    cell: (member) => <Who member={member} />,
  },
  {
    id: 'role',
    header: words.columns.role,
    aside: true,
    cell: ({ role }) => (
      <span title={words.roleWhat[role]}>
        <StateBadge state={role} />
      </span>
    ),
  },
  {
    id: 'seen',
    header: words.columns.seen,
    className: 'whitespace-nowrap',
    cell: ({ lastSeenAt }) =>
      lastSeenAt ? <Time value={lastSeenAt} /> : <span className="text-faint">{words.notSeen}</span>,
  },
]

function Who({ member: { personId, name, email } }: { member: Member }) {
  const { person } = useSession()
  return (
    <span className="block min-w-0">
      <span className="block truncate font-medium">
        {name || email}
        {personId === person.id && <span className="font-normal text-faint"> ({words.you})</span>}
      </span>
      <span className="block truncate text-faint">{email}</span>
    </span>
  )
}

interface ActionsProps {
  member: Member
  isLastOwner: boolean
  onOpen: (open: Open) => void
}

function Actions({ member, isLastOwner, onOpen }: ActionsProps) {
  const { person } = useSession()
  const mayOwn = useMay('own')
  const isSelf = member.personId === person.id
  const label = words.actionsOf(member.name || member.email)
  if (!mayOwn && !isSelf) return null
  if (isLastOwner) return <IconButton size="small" icon={Ellipsis} label={label} refusal={words.lastOwner} />
  const change: MenuItem[] = mayOwn
    ? [{ label: words.changeRole, icon: UserCog, onSelect: () => onOpen({ what: 'role', member }) }]
    : []
  const remove: MenuItem = {
    label: isSelf ? words.leave : words.remove,
    icon: isSelf ? LogOut : UserMinus,
    danger: true,
    onSelect: () => onOpen({ what: 'remove', member }),
  }
  const groups = [change, [remove]].filter((group) => group.length > 0)
  return <Menu trigger={<IconButton size="small" icon={Ellipsis} label={label} />} groups={groups} />
}
