// The dialog for another role of a member, with the rights of each role.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api, read } from '../../api/client.ts'
import { FormDialog } from '../../parts/form/form-dialog.tsx'
import { RadioGroup } from '../../parts/form/radio-group.tsx'
import { toast } from '../../parts/toasts.ts'
import { useSession } from '../../shell/session.ts'
import { members as words } from '../../texts/members.ts'
import { MadeChoice, refreshMade } from './made.tsx'
import { type Member, madeQuery, type Role, roles } from './queries.ts'

interface ChangeRoleProps {
  member: Member
  onClose: () => void
}

export function ChangeRole({ member, onClose }: ChangeRoleProps) {
  const [role, setRole] = useState<Role>(member.role)
  const [isEnding, setIsEnding] = useState(true)
  const made = useQuery(madeQuery(member.personId))
  const isSelf = useSession().person.id === member.personId
  const change = useChange(member, onClose)
  return (
    <FormDialog
      onClose={onClose}
      title={words.changeTitle(member.name || member.email)}
      submit={words.changeDeed}
      sending={{ isPending: change.isPending || made.isPending, error: change.error }}
      disabled={role === member.role}
      onSubmit={() => change.mutate({ role, made: isEnding ? 'end' : 'keep' })}
    >
      <RolePicker label={words.columns.role} value={role} onChange={setRole} />
      {role !== member.role && (
        <MadeChoice query={made} isSelf={isSelf} nextRole={role} isEnding={isEnding} onChange={setIsEnding} />
      )}
    </FormDialog>
  )
}

function useChange({ personId }: Member, onDone: () => void) {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: (body: { role: Role; made: 'end' | 'keep' }) =>
      read(api.PATCH('/v1/members/{personId}', { params: { path: { personId } }, body })),
    onSuccess: async () => {
      toast(words.changed)
      onDone()
      await refreshMade(queries)
      await queries.invalidateQueries({ queryKey: ['session'] })
    },
  })
}

interface RolePickerProps {
  label: string
  value: Role
  onChange: (role: Role) => void
}

export function RolePicker({ label, value, onChange }: RolePickerProps) {
  const options = roles.map((role) => ({ value: role, label: words.roles[role], hint: words.roleWhat[role] }))
  return <RadioGroup label={label} options={options} value={value} onChange={onChange} />
}
