// The pages of the desk by what stands behind the # of its address.
import {
  createHashHistory,
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
} from '@tanstack/react-router'
import { Frame } from './frame.tsx'
import { Broken, NotFound } from './not-found.tsx'

const root = createRootRoute({ component: Frame, notFoundComponent: NotFound, errorComponent: Broken })

function page<Name extends string>(
  path: string,
  name: Name,
  load: () => Promise<Record<Name, () => unknown>>,
) {
  const component = lazyRouteComponent(load as () => Promise<Record<Name, () => never>>, name)
  return createRoute({ getParentRoute: () => root, path, component })
}

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
  scrollRestoration: true,
})
