// The operator's actions on an organization.
import { Ellipsis, Pencil, Trash2, XOctagon } from 'lucide-react'
import { useState } from 'react'
import { read } from '../../api/client.ts'
import { Button, IconButton } from '../../parts/form/button.tsx'
import { Confirm } from '../../parts/form/confirm.tsx'
import { TextField } from '../../parts/form/field.tsx'
import { FormDialog } from '../../parts/form/form-dialog.tsx'
import { Menu } from '../../parts/form/menu.tsx'
import { desk } from '../../texts/desk.ts'
import { api, type Organization } from '../client.ts'
import { useAction, useDeed, useDone } from '../deed.ts'
import { Delete } from './delete.tsx'

const { organization: words } = desk
type Open = 'suspend' | 'rename' | 'cancel' | 'delete' | null

interface DeedProps {
  organization: Organization
  onClose: () => void
}

export function Deeds({ organization }: { organization: Organization }) {
  const [open, setOpen] = useState<Open>(null)
  const deed = { organization, onClose: () => setOpen(null) }
  return (
    <>
      <MainDeed organization={organization} onSuspend={() => setOpen('suspend')} />
      <Menu
        trigger={<IconButton label={words.more} icon={Ellipsis} />}
        groups={[
          [
            {
              label: words.rename,
              icon: Pencil,
              onSelect: () => setOpen('rename'),
              disabled: organization.status === 'deleting',
            },
          ],
          [
            { label: words.cancel, icon: XOctagon, danger: true, onSelect: () => setOpen('cancel') },
            { label: words.remove, icon: Trash2, danger: true, onSelect: () => setOpen('delete') },
          ],
        ]}
      />
      {open === 'suspend' && <Suspend {...deed} />}
      {open === 'rename' && <Rename {...deed} />}
      {open === 'cancel' && <CancelQueue {...deed} />}
      {open === 'delete' && <Delete {...deed} />}
    </>
  )
}

function MainDeed({
  organization: { id, name, status },
  onSuspend,
}: {
  organization: Organization
  onSuspend: () => void
}) {
  const params = { path: { organizationId: id } }
  const approve = useAction(
    () => read(api.POST('/organizations/{organizationId}/approve', { params, body: null })),
    () => words.approved(name),
  )
  if (status === 'deleting') return null
  if (status === 'active') return <Button onClick={onSuspend}>{words.suspend}</Button>
  return (
    <Button variant="primary" {...approve}>
      {status === 'pending' ? words.approve : words.approveAgain}
    </Button>
  )
}

function Suspend({ organization: { id, name }, onClose }: DeedProps) {
  const params = { path: { organizationId: id } }
  return (
    <Confirm
      onClose={onClose}
      title={words.suspendTitle(name)}
      deed={words.suspend}
      change={() => read(api.POST('/organizations/{organizationId}/suspend', { params }))}
      onDone={useDone(() => words.suspended(name), onClose)}
    >
      {words.suspendWhat}
    </Confirm>
  )
}

function CancelQueue({ organization: { id, name, waiting }, onClose }: DeedProps) {
  const given = { params: { path: { organizationId: id } }, body: { confirm: name } }
  return (
    <Confirm
      onClose={onClose}
      title={words.cancelTitle(name)}
      deed={words.cancel}
      stay={words.keep}
      word={name}
      change={() => read(api.POST('/organizations/{organizationId}/cancel-queue', given))}
      onDone={useDone(({ cancelled }) => words.cancelled(cancelled), onClose)}
    >
      {words.cancelWhat(waiting)}
    </Confirm>
  )
}

function Rename({ organization, onClose }: DeedProps) {
  const [name, setName] = useState(organization.name)
  const rename = useDeed(
    () =>
      read(
        api.PATCH('/organizations/{organizationId}', {
          params: { path: { organizationId: organization.id } },
          body: { name: name.trim() },
        }),
      ),
    () => words.renamed,
    onClose,
  )
  return (
    <FormDialog
      onClose={onClose}
      title={words.renameTitle}
      submit={words.rename}
      sending={rename}
      disabled={name.trim() === '' || name.trim() === organization.name}
      onSubmit={() => rename.mutate()}
    >
      <TextField
        label={desk.organizations.name}
        value={name}
        maxLength={200}
        onChange={(event) => setName(event.target.value)}
      />
    </FormDialog>
  )
}
