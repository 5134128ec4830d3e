// The pages of the desk, chosen by the address after the #.
import { createHashHistory, createRootRoute, createRoute, createRouter } from '@tanstack/react-router'
import { Broken, BrokenAlone, NotFound } from '../shell/failures.tsx'
import { type LoadPage, lazyPage } from '../shell/lazy-page.ts'
import { Frame } from './frame.tsx'

const root = createRootRoute({ component: Frame, errorComponent: BrokenAlone })

const page = <Name extends string>(path: string, name: Name, load: LoadPage<Name>) =>
  createRoute({ getParentRoute: () => root, path, component: lazyPage(name, load) })

const routes = [
  page('/', 'Home', () => import('./home.tsx')),
  page('/approvals', 'Approvals', () => import('./approvals.tsx')),
  page('/organizations', 'Organizations', () => import('./organizations.tsx')),
  page('/organizations/$organizationId', 'Organization', () => import('./organization/organization.tsx')),
  page('/queues', 'Queues', () => import('./queues/queues.tsx')),
  page('/queues/$queue', 'Queue', () => import('./queues/queue.tsx')),
  page('/nodes', 'Nodes', () => import('./nodes/nodes.tsx')),
  page('/mail', 'Mails', () => import('./mail/mails.tsx')),
  page('/mail/$kind/$mailId', 'MailView', () => import('./mail/mail-view.tsx')),
  page('/audit', 'Audit', () => import('./audit.tsx')),
  page('/numbers', 'Numbers', () => import('./numbers.tsx')),
]

export const router = createRouter({
  routeTree: root.addChildren(routes),
  history: createHashHistory(),
  defaultPreload: 'intent',
  defaultErrorComponent: Broken,
  defaultNotFoundComponent: NotFound,
  scrollRestoration: true,
})
