// The page before an organization may act: asking for access, waiting for it, and switching to another organization.
import { useMutation, useQuery } from '@tanstack/react-query'
import { useRouter, useSearch } from '@tanstack/react-router'
import { Building2, LogOut } from 'lucide-react'
import { type ReactNode, useEffect } from 'react'
import { api, read } from '../../api/client.ts'
import { CodeBlock } from '../../parts/code-block.tsx'
import { ErrorNote } from '../../parts/error-note.tsx'
import { Button } from '../../parts/form/button.tsx'
import { type Session, sessionQuery, useSession } from '../../shell/session.ts'
import { useSignOut } from '../../shell/sign-out.ts'
import { access } from '../../texts/access.ts'
import { AccessFrame } from './access-frame.tsx'
import { AskForAccess } from './ask-for-access.tsx'
import { useEnter } from './enter.ts'

const texts = access.pending
const againMs = 5_000

export function Pending() {
  const { organization } = useSession()
  const { new: isNew } = useSearch({ strict: false }) as { new?: string }
  if (isNew || !organization) return <AskForAccess footer={<Footer />} />
  return organization.status === 'suspended' ? (
    <AccessFrame title={texts.suspendedTitle(organization.name)} lead={texts.suspended} footer={<Footer />}>
      <Others />
    </AccessFrame>
  ) : (
    <Waiting organization={organization} />
  )
}

function Waiting({ organization }: { organization: NonNullable<Session['organization']> }) {
  const { development } = useSession()
  useGoOn()
  return (
    <AccessFrame title={texts.title(organization.name)} lead={texts.lead} footer={<Footer />}>
      {development && (
        <Step title={texts.developmentHow}>
          <CodeBlock label={texts.developmentHow} code={`bin/posthorn org approve ${organization.id}`} />
        </Step>
      )}
      <Step title={texts.meanwhile}>
        <p className="text-muted">
          <a href="/docs" className="text-accent underline underline-offset-3">
            {texts.meanwhileReference}
          </a>
          . {texts.meanwhilePasskey}
        </p>
      </Step>
      <Others />
    </AccessFrame>
  )
}

function Step({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className="grid gap-1.5">
      <h2 className="font-medium">{title}</h2>
      {children}
    </section>
  )
}

/** Polls the session, and opens the pages once the organization may act. */
function useGoOn(): void {
  const router = useRouter()
  const { data: session } = useQuery({ ...sessionQuery, refetchInterval: againMs, staleTime: againMs })
  const isActive = session?.organization?.status === 'active'
  useEffect(() => {
    if (isActive) void router.navigate({ to: '/' })
  }, [isActive, router])
}

function Others() {
  const { organizations, organization } = useSession()
  const enter = useEnter()
  const others = organizations.filter(({ id, status }) => id !== organization?.id && status === 'active')
  const { mutate, error } = useMutation({
    mutationFn: (organizationId: string) =>
      read(api.PUT('/v1/session/organization', { body: { organizationId } })),
    onSuccess: enter,
  })
  if (others.length === 0) return null
  return (
    <Step title={texts.others}>
      {others.map(({ id, name }) => (
        <Button key={id} icon={Building2} onClick={() => mutate(id)}>
          {name}
        </Button>
      ))}
      <ErrorNote error={error} />
    </Step>
  )
}

function Footer() {
  const { person } = useSession()
  const signOut = useSignOut()
  return (
    <div className="flex flex-wrap items-center justify-between gap-2">
      <span>{texts.signedInAs(person.email)}</span>
      <Button size="small" variant="quiet" icon={LogOut} onClick={signOut}>
        {texts.signOut}
      </Button>
    </div>
  )
}
