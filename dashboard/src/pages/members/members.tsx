// The members and the invited people, and an owner's actions: invite, change roles, remove.
import { useQuery } from '@tanstack/react-query'
import { UserPlus } from 'lucide-react'
import { useState } from 'react'
import { Button } from '../../parts/form/button.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { Page } from '../../parts/page.tsx'
import { useMay, useSession } from '../../shell/session.ts'
import { members as words } from '../../texts/members.ts'
import { InvitationList } from './invitation-list.tsx'
import { Invite } from './invite.tsx'
import { MemberTable } from './member-table.tsx'
import { type Member, membersQuery } from './queries.ts'

export function Members() {
  const [isInviting, setIsInviting] = useState(false)
  const mayOwn = useMay('own')
  const query = useQuery(membersQuery)
  const invite = mayOwn && (
    <Button variant="primary" icon={UserPlus} onClick={() => setIsInviting(true)}>
      {words.invite}
    </Button>
  )
  return (
    <Page title={words.title} lead={words.lead} actions={invite}>
      <Loaded query={query}>
        {({ members, invitations }) => (
          <div className="grid grid-cols-[minmax(0,1fr)] gap-6">
            <Advice members={members} />
            <MemberTable members={members} />
            {invitations.length > 0 && <InvitationList invitations={invitations} />}
          </div>
        )}
      </Loaded>
      {isInviting && <Invite onClose={() => setIsInviting(false)} />}
    </Page>
  )
}

/** Explains to a sole owner why another owner is needed. */
function Advice({ members }: { members: readonly Member[] }) {
  const { person } = useSession()
  const owners = members.filter(({ role }) => role === 'owner')
  if (owners.length !== 1 || owners[0]?.personId !== person.id) return null
  const isAlone = members.length === 1
  return (
    <div className="rounded-md bg-note-soft px-4 py-3 text-note">
      {isAlone && <p className="font-medium">{words.alone}</p>}
      <p className="text-sm text-balance">{isAlone ? words.aloneWhat : words.lastOwner}</p>
    </div>
  )
}
