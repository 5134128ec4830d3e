// The organizations that wait for the operator's approval.
import { Link } from '@tanstack/react-router'
import { UserCheck } from 'lucide-react'
import { useState } from 'react'
import { read } from '../api/client.ts'
import { Empty } from '../parts/empty.tsx'
import { ErrorNote } from '../parts/error-note.tsx'
import { Button, ButtonLink } from '../parts/form/button.tsx'
import { Checkbox } from '../parts/form/field.tsx'
import { PagedRows } from '../parts/list/paged-table.tsx'
import { Page } from '../parts/page.tsx'
import { Time } from '../parts/time.tsx'
import { desk } from '../texts/desk.ts'
import { type Answer, api } from './client.ts'
import { useDeed } from './deed.ts'
import { useOrganizations } from './queries.ts'

const { approvals: words } = desk

export function Approvals() {
  const query = useOrganizations({ status: 'pending' })
  const first = query.data?.pages[0]
  return (
    <Page title={words.title} lead={first && first.counts.pending > 0 && words.lead(first.counts.pending)}>
      <PagedRows query={query} rowsOf={({ organizations }) => organizations} empty={<Nobody />}>
        {(rows) => (
          <ul className="divide-y">
            {rows.map((row) => (
              <Waits key={row.id} row={row} />
            ))}
          </ul>
        )}
      </PagedRows>
    </Page>
  )
}

function Nobody() {
  return (
    <Empty
      icon={UserCheck}
      title={words.nobody}
      action={<ButtonLink to="/organizations">{words.all}</ButtonLink>}
    >
      {words.nobodyWhat}
    </Empty>
  )
}

type Row = Answer<'/organizations'>['organizations'][number]

function Waits({ row: { id, name, owner, createdAt } }: { row: Row }) {
  const [serverKeys, setServerKeys] = useState(false)
  const approve = useDeed(
    () =>
      read(
        api.POST('/organizations/{organizationId}/approve', {
          params: { path: { organizationId: id } },
          body: serverKeys ? { serverKeys } : null,
        }),
      ),
    () => words.approved(name),
  )
  return (
    <li className="grid gap-3 px-4 py-3.5 sm:px-5">
      <div className="flex items-center justify-between gap-4">
        <div className="min-w-0">
          <Link to={`/organizations/${id}`} className="rounded-sm font-semibold break-words hover:underline">
            {name}
          </Link>
          <p className="text-sm break-words text-muted">
            {owner ?? words.noOwner} · {words.asked} <Time value={createdAt} />
          </p>
        </div>
        <Button
          variant="primary"
          aria-label={`${words.approve}: ${name}`}
          busy={approve.isPending}
          onClick={() => approve.mutate()}
        >
          {words.approve}
        </Button>
      </div>
      <Checkbox
        label={words.serverKeys}
        hint={words.serverKeysHint}
        checked={serverKeys}
        onChange={setServerKeys}
      />
      <ErrorNote error={approve.error} />
    </li>
  )
}
