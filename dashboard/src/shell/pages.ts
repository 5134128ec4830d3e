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
import type { shell } from '../texts/shell.ts'
import type { Session } from './session.ts'

export interface PageLink {
  id: keyof typeof shell.pages
  to: string
  icon: LucideIcon
  key: string
}

const daily: PageLink[] = [
  { id: 'overview', to: '/', icon: House, key: 'o' },
  { id: 'mail', to: '/mail', icon: Inbox, key: 'm' },
  { id: 'sending', to: '/sending', icon: Send, key: 's' },
  { id: 'numbers', to: '/numbers', icon: ChartNoAxesColumn, key: 'n' },
]
const captured: PageLink = { id: 'captured', to: '/captured', icon: AtSign, key: 'c' }
const sending: PageLink[] = [
  { id: 'domains', to: '/domains', icon: Globe, key: 'd' },
  { id: 'suppressions', to: '/suppressions', icon: Ban, key: 'u' },
  { id: 'validation', to: '/validation', icon: MailCheck, key: 'v' },
  { id: 'webhooks', to: '/webhooks', icon: Webhook, key: 'w' },
]
const organization: PageLink[] = [
  { id: 'keys', to: '/keys', icon: KeyRound, key: 'k' },
  { id: 'members', to: '/members', icon: Users, key: 'p' },
  { id: 'audit', to: '/audit', icon: ScrollText, key: 'a' },
  { id: 'settings', to: '/settings', icon: Settings, key: 't' },
]

/** In the groups of the side bar. */
export function pageGroups({ showsCaptured }: Pick<Session, 'showsCaptured'>): PageLink[][] {
  return [daily, showsCaptured ? [...sending, captured] : sending, organization]
}
