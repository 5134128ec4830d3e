// Recent problems: failed sends, unverified domains, and disabled endpoints.
import { useQueries } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { api, read } from '../../api/client.ts'
import { StateBadge } from '../../parts/badge.tsx'
import { Card } from '../../parts/card.tsx'
import { ErrorNote } from '../../parts/error-note.tsx'
import { SkeletonRows } from '../../parts/list/skeleton.tsx'
import { Time } from '../../parts/time.tsx'
import { life } from '../../texts/life.ts'
import { overview } from '../../texts/overview.ts'
import { stateOf } from '../sending/submission-state.ts'

const mostFailed = 5
const mostOthers = 50

interface Problem {
  to: string
  title: string
  what: string
  state: string
  at: string
}

export function Problems() {
  const queries = useQueries({
    queries: [
      { queryKey: ['submissions', 'problems'], queryFn: failedSends },
      { queryKey: ['domains', 'problems'], queryFn: brokenDomains },
      { queryKey: ['webhooks', 'problems'], queryFn: silentWebhooks },
    ],
  })
  const error = queries.find((query) => query.error)?.error
  const isPending = queries.some((query) => query.isPending)
  const problems = queries.flatMap((query) => query.data ?? []).sort((a, b) => b.at.localeCompare(a.at))
  return (
    <Card title={overview.problems} flush>
      {error && (
        <div className="p-4">
          <ErrorNote error={error} />
        </div>
      )}
      {isPending && <SkeletonRows count={3} />}
      {!isPending && !error && problems.length === 0 && (
        <p className="px-4 py-4 text-balance text-muted sm:px-5">{overview.problemsNone}</p>
      )}
      <ul>
        {problems.map((problem) => (
          <ProblemRow key={problem.to} problem={problem} />
        ))}
      </ul>
    </Card>
  )
}

function ProblemRow({ problem: { to, title, what, state, at } }: { problem: Problem }) {
  return (
    <li className="border-b last:border-b-0">
      <Link
        to={to}
        className="flex items-start justify-between gap-4 px-4 py-3 text-sm -outline-offset-2 hover:bg-hover sm:px-5"
      >
        <span className="min-w-0">
          <span className="block truncate font-medium">{title}</span>
          <span className="block truncate text-faint">{what}</span>
        </span>
        <span className="grid shrink-0 justify-items-end gap-0.5">
          <StateBadge state={state} />
          <Time value={at} className="text-xs text-faint" />
        </span>
      </Link>
    </li>
  )
}

async function failedSends(): Promise<Problem[]> {
  const query = { status: 'failed' as const, limit: mostFailed }
  const { submissions } = await read(api.GET('/v1/submissions', { params: { query } }))
  return submissions.map((submission) => {
    const { id, subject, recipients, response, updatedAt } = submission
    const failed = recipients.find(({ response: answer }) => answer !== null)
    return {
      to: `/sending/${id}`,
      title: subject || life.erasedSubject,
      what: failed?.response ?? response ?? overview.to(recipients[0]?.email ?? '', recipients.length - 1),
      state: stateOf(submission),
      at: updatedAt,
    }
  })
}

async function brokenDomains(): Promise<Problem[]> {
  const { domains } = await read(api.GET('/v1/domains', { params: { query: { limit: mostOthers } } }))
  return domains
    .filter(({ status }) => status !== 'verified')
    .map(({ id, domain, status, updatedAt }) => ({
      to: `/domains/${id}`,
      title: domain,
      what: status === 'failed' ? overview.domainFailed : overview.domainPending,
      state: status,
      at: updatedAt,
    }))
}

async function silentWebhooks(): Promise<Problem[]> {
  const { webhooks } = await read(api.GET('/v1/webhooks', { params: { query: { limit: mostOthers } } }))
  return webhooks
    .filter(({ status }) => status === 'disabled')
    .map(({ id, url, status, updatedAt }) => ({
      to: `/webhooks/${id}`,
      title: url,
      what: overview.webhookDisabled,
      state: status,
      at: updatedAt,
    }))
}
