// The current organization, and the switch to another.
import { useMutation } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { Building2, Check, ChevronsUpDown, Plus } from 'lucide-react'
import { api, read } from '../api/client.ts'
import { wordsOf } from '../parts/error-note.tsx'
import { Menu } from '../parts/form/menu.tsx'
import { toast } from '../parts/toasts.ts'
import { shell } from '../texts/shell.ts'
import { Logo } from './logo.tsx'
import { useSession, useTakeSession } from './session.ts'

export function OrganizationMenu() {
  const { organization, organizations } = useSession()
  const navigate = useNavigate()
  const takeSession = useTakeSession()
  const change = useMutation({
    mutationFn: (organizationId: string) =>
      read(api.PUT('/v1/session/organization', { body: { organizationId } })),
    onSuccess: async (session) => {
      takeSession(session)
      await navigate({ to: '/' })
    },
    onError: (error) => toast(wordsOf(error).title, 'bad'),
  })
  const memberships = organizations.map(({ id, name }) => ({
    label: name,
    icon: Building2,
    onSelect: () => change.mutate(id),
    end: id === organization?.id ? <Check size={15} className="text-accent" aria-hidden /> : null,
  }))
  const another = {
    label: shell.anotherOrganization,
    icon: Plus,
    onSelect: () => void navigate({ to: '/pending', search: { new: 'yes' } }),
  }
  return (
    <Menu
      align="start"
      groups={[memberships, [another]]}
      trigger={<Trigger name={organization?.name ?? shell.name} />}
    />
  )
}

function Trigger({ name, ...rest }: { name: string }) {
  return (
    <button
      type="button"
      {...rest}
      className="flex h-10 w-full min-w-0 items-center gap-2.5 rounded-md px-1.5 text-left hover:bg-hover"
    >
      <Logo />
      <span className="sr-only">{shell.switchOrganization}: </span>
      <span className="min-w-0 flex-1 truncate font-semibold">{name}</span>
      <ChevronsUpDown size={14} className="shrink-0 text-faint" aria-hidden />
    </button>
  )
}
