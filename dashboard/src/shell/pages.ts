// The pages of the side bar: name, address, icon, and the key after `g`.
import {
  AtSign,
  Ban,
  ChartNoAxesColumn,
  Globe,
  House,
  Inbox,
  KeyRound,
  type LucideIcon,
  MailCheck,
  ScrollText,
  Send,
  Settings,
  Users,
  Webhook,
} from 'lucide-react'
import type { ReactNode } from 'react'
import { shell } from '../texts/shell.ts'
import type { Session } from './session.ts'

export interface PageLink {
  label: string
  to: string
  icon: LucideIcon
  /** The key after `g`. */
  key: string
  /** Shown after the label. */
  mark?: ReactNode
}

export type PageGroups = readonly (readonly PageLink[])[]

const daily: PageLink[] = [
  { label: shell.pages.overview, to: '/', icon: House, key: 'o' },
  { label: shell.pages.mail, to: '/mail', icon: Inbox, key: 'm' },
  { label: shell.pages.sending, to: '/sending', icon: Send, key: 's' },
  { label: shell.pages.numbers, to: '/numbers', icon: ChartNoAxesColumn, key: 'n' },
]
const captured: PageLink = { label: shell.pages.captured, to: '/captured', icon: AtSign, key: 'c' }
const sending: PageLink[] = [
  { label: shell.pages.domains, to: '/domains', icon: Globe, key: 'd' },
  { label: shell.pages.suppressions, to: '/suppressions', icon: Ban, key: 'u' },
  { label: shell.pages.validation, to: '/validation', icon: MailCheck, key: 'v' },
  { label: shell.pages.webhooks, to: '/webhooks', icon: Webhook, key: 'w' },
]
const organization: PageLink[] = [
  { label: shell.pages.keys, to: '/keys', icon: KeyRound, key: 'k' },
  { label: shell.pages.members, to: '/members', icon: Users, key: 'p' },
  { label: shell.pages.audit, to: '/audit', icon: ScrollText, key: 'a' },
  { label: shell.pages.settings, to: '/settings', icon: Settings, key: 't' },
]

/** Returns the pages in the groups of the side bar. */
export function pageGroups({ showsCaptured }: Pick<Session, 'showsCaptured'>) {
  return [daily, showsCaptured ? [...sending, captured] : sending, organization]
}
