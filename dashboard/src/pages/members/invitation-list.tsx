// Open invitations, which an owner can withdraw.
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api, read } from '../../api/client.ts'
import { StateBadge } from '../../parts/badge.tsx'
import { Card } from '../../parts/card.tsx'
import { Button } from '../../parts/form/button.tsx'
import { Confirm } from '../../parts/form/confirm.tsx'
import { type Column, Table } from '../../parts/list/table.tsx'
import { Time } from '../../parts/time.tsx'
import { toast } from '../../parts/toasts.ts'
import { useMay } from '../../shell/session.ts'
import { members as words } from '../../texts/members.ts'
import type { Invitation } from './queries.ts'

export function InvitationList({ invitations }: { invitations: readonly Invitation[] }) {
  const [leaving, setLeaving] = useState<Invitation | null>(null)
  const mayOwn = useMay('own')
  const actions: Column<Invitation> = {
    id: 'actions',
    header: words.columns.actions,
    headerHidden: true,
    align: 'right',
    cell: (invitation) => (
      <Button size="small" onClick={() => setLeaving(invitation)}>
        {words.withdraw}
      </Button>
    ),
  }
  return (
    <Card title={words.invitations} lead={words.invitationsLead} flush>
      <Table
        label={words.invitations}
        columns={mayOwn ? [...columns, actions] : columns}
        rows={invitations}
        keyOf={({ id }) => id}
      />
      {leaving && <Withdraw invitation={leaving} onClose={() => setLeaving(null)} />}
    </Card>
  )
}

const columns: Column<Invitation>[] = [
  {
    id: 'email',
    header: words.columns.who,
    className: 'max-w-0 w-full',
    cell: ({ email }) => <span className="block truncate font-medium">{email}</span>,
  },
  { id: 'role', header: words.columns.role, aside: true, cell: ({ role }) => <StateBadge state={role} /> },
  {
    id: 'expires',
    header: words.columns.expires,
    className: 'whitespace-nowrap',
    cell: ({ expiresAt }) => <Time value={expiresAt} />,
  },
]

function Withdraw({ invitation: { id, email }, onClose }: { invitation: Invitation; onClose: () => void }) {
  const queries = useQueryClient()
  return (
    <Confirm
      onClose={onClose}
      title={words.withdrawTitle}
      deed={words.withdrawDeed}
      change={() =>
        read(api.DELETE('/v1/invitations/{invitationId}', { params: { path: { invitationId: id } } }))
      }
      onDone={async () => {
        toast(words.withdrawn)
        onClose()
        await queries.invalidateQueries({ queryKey: ['members'] })
      }}
    >
      {words.withdrawWhat(email)}
    </Confirm>
  )
}
