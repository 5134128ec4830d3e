// One audit entry as a sentence, with a link to its subject if there is a page, and foldable details.
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import type { Schemas } from '../../api/client.ts'
import { Time } from '../../parts/time.tsx'
import { audit, deeds, ownDeeds } from '../../texts/members.ts'

export type AuditEntry = Schemas['AuditLog']['entries'][number]

export function AuditRow({ entry }: { entry: AuditEntry }) {
  const { actor, ip, at, detail } = entry
  const particulars = Object.entries(detail)
  return (
    <li className="grid grid-cols-[minmax(0,1fr)_auto] gap-x-4 gap-y-0.5 border-b px-4 py-2.5 text-sm last:border-b-0 sm:px-5">
      <p className="min-w-0 break-words">
        <span className="font-medium">{actor}</span> <Deed entry={entry} />
      </p>
      <Time value={at} className="text-faint whitespace-nowrap" />
      <div className="min-w-0 text-faint">
        {particulars.length > 0 ? (
          <details>
            <summary className="w-fit rounded-sm hover:text-ink">{ip ? audit.from(ip) : audit.here}</summary>
            <dl className="mt-1.5 grid grid-cols-[auto_minmax(0,1fr)] gap-x-4 gap-y-0.5 pl-4">
              {particulars.map(([name, value]) => (
                <Particular key={name} name={name} value={value} />
              ))}
            </dl>
          </details>
        ) : (
          <p>{ip ? audit.from(ip) : audit.here}</p>
        )}
      </div>
    </li>
  )
}

function Deed({ entry: { actor, action, subject, detail } }: { entry: AuditEntry }) {
  const own = subject === actor ? ownDeeds[action] : undefined
  if (own) return own
  const to = pageOf(action, subject, detail)
  const shown = action.startsWith('webhook.') && typeof detail['url'] === 'string' ? detail['url'] : subject
  return (
    <>
      {deeds[action] ?? ownDeeds[action] ?? action}{' '}
      {to ? <SubjectLink to={to}>{shown}</SubjectLink> : <span className="wrap-anywhere">{shown}</span>}
    </>
  )
}

function SubjectLink({ to, children }: { to: string; children: ReactNode }) {
  return (
    <Link
      to={to}
      className="rounded-sm wrap-anywhere underline decoration-line-strong underline-offset-3 hover:decoration-current"
    >
      {children}
    </Link>
  )
}

/** Returns the page that still shows the subject, or null. */
function pageOf(action: string, subject: string, detail: Record<string, unknown>): string | null {
  if (action.startsWith('key.')) return '/keys'
  if (action.startsWith('member.')) return '/members'
  if (action.startsWith('webhook.') && action !== 'webhook.deleted') return `/webhooks/${subject}`
  if (action.startsWith('suppression.')) return '/suppressions'
  if (action === 'submission.cancelled') return `/sending/${subject}`
  if (action.startsWith('domain.') && action !== 'domain.deleted') return '/domains'
  if (action === 'message.deleted' && typeof detail['inboxId'] === 'string')
    return `/mail/${detail['inboxId']}`
  return null
}

function Particular({ name, value }: { name: string; value: unknown }) {
  return (
    <>
      <dt>{name}</dt>
      <dd className="wrap-anywhere text-muted">
        <code>{typeof value === 'string' ? value : JSON.stringify(value)}</code>
      </dd>
    </>
  )
}
