// The pages of the desk in their order, with their keys.
import { Building2, ChartNoAxesColumn, Mail, Route, ScrollText, Server, UserCheck } from 'lucide-react'
import type { PageLink } from '../shell/pages.ts'
import { desk } from '../texts/desk.ts'
import { useCounts } from './queries.ts'

const { pages } = desk

export const deskPages: readonly PageLink[] = [
  { label: pages.approvals, to: '/approvals', icon: UserCheck, key: 'a', mark: <Waiting /> },
  { label: pages.organizations, to: '/organizations', icon: Building2, key: 'o' },
  { label: pages.queues, to: '/queues', icon: Route, key: 'q' },
  { label: pages.nodes, to: '/nodes', icon: Server, key: 'n' },
  { label: pages.mail, to: '/mail', icon: Mail, key: 'm' },
  { label: pages.audit, to: '/audit', icon: ScrollText, key: 'l' },
  { label: pages.numbers, to: '/numbers', icon: ChartNoAxesColumn, key: 'u' },
]

/** The number of organizations that wait for approval. */
function Waiting() {
  const { data: counts } = useCounts()
  if (!counts?.pending) return null
  return (
    <span className="numbers grid h-5 min-w-5 place-items-center rounded-full bg-accent px-1.5 text-xs font-semibold text-on-accent">
      {counts.pending}
    </span>
  )
}
