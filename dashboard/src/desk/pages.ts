// The pages of the desk in their order, with their keys.
import {
  Building2,
  ChartNoAxesColumn,
  type LucideIcon,
  Mail,
  Route,
  ScrollText,
  Server,
  UserCheck,
} from 'lucide-react'
import type { desk } from '../texts/desk.ts'

export interface DeskPage {
  id: keyof typeof desk.pages
  to: string
  icon: LucideIcon
  /** Behind `g`. */
  key: string
}

export const deskPages: readonly DeskPage[] = [
  { id: 'approvals', to: '/approvals', icon: UserCheck, key: 'a' },
  { id: 'organizations', to: '/organizations', icon: Building2, key: 'o' },
  { id: 'queues', to: '/queues', icon: Route, key: 'q' },
  { id: 'nodes', to: '/nodes', icon: Server, key: 'n' },
  { id: 'mail', to: '/mail', icon: Mail, key: 'm' },
  { id: 'audit', to: '/audit', icon: ScrollText, key: 'l' },
  { id: 'numbers', to: '/numbers', icon: ChartNoAxesColumn, key: 'u' },
]
