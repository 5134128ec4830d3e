// Removes a member, or lets a member leave, after the address was typed.
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { api, read } from '../../api/client.ts'
import { Confirm } from '../../parts/form/confirm.tsx'
import { toast } from '../../parts/toasts.ts'
import { sessionQuery, useSession, useTakeSession } from '../../shell/session.ts'
import { members as words } from '../../texts/members.ts'
import { MadeChoice, refreshMade } from './made.tsx'
import { type Member, madeQuery } from './queries.ts'

export function RemoveMember({ member, onClose }: { member: Member; onClose: () => void }) {
  const { person } = useSession()
  const [isEnding, setIsEnding] = useState(true)
  const made = useQuery(madeQuery(member.personId))
  const isSelf = member.personId === person.id
  const leave = useLeave(member, person.id, onClose)
  return (
    <Confirm
      onClose={onClose}
      title={isSelf ? words.leaveTitle : words.removeTitle(member.name || member.email)}
      deed={isSelf ? words.leaveDeed : words.removeDeed}
      busy={made.isPending}
      change={() => {
        const path = { personId: member.personId }
        const query = { made: isEnding ? 'end' : 'keep' } as const
        return read(api.DELETE('/v1/members/{personId}', { params: { path, query } }))
      }}
      onDone={leave}
      word={member.email}
    >
      <div className="grid grid-cols-[minmax(0,1fr)] gap-4">
        <p>{isSelf ? words.leaveWhat : words.removeWhat}</p>
        <MadeChoice query={made} isSelf={isSelf} nextRole={null} isEnding={isEnding} onChange={setIsEnding} />
      </div>
    </Confirm>
  )
}

function useLeave({ personId }: Member, ownId: string, onDone: () => void) {
  const queries = useQueryClient()
  const navigate = useNavigate()
  const takeSession = useTakeSession()
  return async () => {
    toast(words.removed)
    onDone()
    if (personId !== ownId) return await refreshMade(queries)
    // A person who left is now in another organization, or in none.
    const session = await queries.fetchQuery({ ...sessionQuery, staleTime: 0 })
    if (session) takeSession(session)
    await navigate({ to: '/' })
  }
}
