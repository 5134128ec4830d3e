// Another role for a member, each with what it may.
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { api, read } from '../../api/client.ts'
import { Button } from '../../parts/button.tsx'
import { Dialog } from '../../parts/dialog.tsx'
import { ErrorNote } from '../../parts/error-note.tsx'
import { RadioGroup } from '../../parts/radio-group.tsx'
import { toast } from '../../parts/toasts.ts'
import { members as words } from '../../texts/members.ts'
import { parts } from '../../texts/parts.ts'
import { type Member, type Role, roles } from './queries.ts'

interface ChangeRoleProps {
  member: Member
  onClose: () => void
}

export function ChangeRole({ member, onClose }: ChangeRoleProps) {
  const [role, setRole] = useState<Role>(member.role)
  const change = useChange(member, onClose)
  const send = (event: FormEvent) => {
    event.preventDefault()
    change.mutate(role)
  }
  const footer = (
    <>
      <Button onClick={onClose}>{parts.cancel}</Button>
      <Button
        variant="primary"
        type="submit"
        form="change-role"
        busy={change.isPending}
        disabled={role === member.role}
      >
        {words.changeDeed}
      </Button>
    </>
  )
  return (
    <Dialog open onClose={onClose} title={words.changeTitle(member.name || member.email)} footer={footer}>
      <form id="change-role" onSubmit={send} className="grid gap-4">
        <RolePicker label={words.columns.role} value={role} onChange={setRole} />
        <ErrorNote error={change.error} />
      </form>
    </Dialog>
  )
}

function useChange({ personId }: Member, onDone: () => void) {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: (role: Role) =>
      read(api.PATCH('/v1/members/{personId}', { params: { path: { personId } }, body: { role } })),
    onSuccess: async () => {
      toast(words.changed)
      onDone()
      await queries.invalidateQueries({ queryKey: ['members'] })
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
