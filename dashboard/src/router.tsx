// All addresses, each with its page, which is fetched when it is opened.
import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Outlet,
  type RouteComponent,
  redirect,
} from '@tanstack/react-router'
import { queries } from './queries.ts'
import { Broken, BrokenAlone, NotFound } from './shell/failures.tsx'
import { sessionQuery } from './shell/session.ts'

/** What stands behind the `?` of an address: texts, for the page to judge. */
type Search = Record<string, string | undefined>

const root = createRootRoute({
  component: Outlet,
  errorComponent: BrokenAlone,
  validateSearch: (search): Search => search as Search,
})

const page = <Path extends string>(path: Path, component: RouteComponent) =>
  createRoute({ getParentRoute: () => frame, path, component })

/** The pages behind the sign-in, for members of an organization that may act. */
const frame = createRoute({
  getParentRoute: () => root,
  id: 'frame',
  component: lazyRouteComponent(() => import('./shell/frame.tsx'), 'Frame'),
  errorComponent: BrokenAlone,
  beforeLoad: async ({ location }) => {
    const session = await queries.ensureQueryData({ ...sessionQuery, revalidateIfStale: true })
    if (!session)
      throw redirect({ to: '/sign-in', search: location.href === '/' ? {} : { to: location.href } })
    if (session.organization?.status !== 'active') throw redirect({ to: '/pending' })
  },
})

const open = <Path extends string>(path: Path, component: RouteComponent) =>
  createRoute({ getParentRoute: () => root, path, component })

const access = [
  open(
    '/sign-in',
    lazyRouteComponent(() => import('./pages/access/sign-in.tsx'), 'SignIn'),
  ),
  open(
    '/sign-up',
    lazyRouteComponent(() => import('./pages/access/sign-up.tsx'), 'SignUp'),
  ),
  open(
    '/confirm',
    lazyRouteComponent(() => import('./pages/access/confirm.tsx'), 'Confirmation'),
  ),
  open(
    '/reset',
    lazyRouteComponent(() => import('./pages/access/reset.tsx'), 'Reset'),
  ),
  open(
    '/invitation',
    lazyRouteComponent(() => import('./pages/access/invitation.tsx'), 'Invitation'),
  ),
  open(
    '/pending',
    lazyRouteComponent(() => import('./pages/access/pending.tsx'), 'Pending'),
  ),
]

/** Three columns that stay while what they show changes: the page reads the ids of the address itself. */
const mailRoot = page(
  '/mail',
  lazyRouteComponent(() => import('./pages/mail/mail.tsx'), 'Mail'),
)
const mail = mailRoot.addChildren([
  createRoute({ getParentRoute: () => mailRoot, path: '/' }),
  createRoute({ getParentRoute: () => mailRoot, path: '/$inboxId' }),
  createRoute({ getParentRoute: () => mailRoot, path: '/$inboxId/$threadId' }),
])

/** The list stays while the mail beside it changes. */
const capturedRoot = page(
  '/captured',
  lazyRouteComponent(() => import('./pages/captured/captured.tsx'), 'Captured'),
)
const captured = capturedRoot.addChildren([
  createRoute({ getParentRoute: () => capturedRoot, path: '/' }),
  createRoute({ getParentRoute: () => capturedRoot, path: '/$capturedId' }),
])

const pages = [
  // An address that leads nowhere.
  page('$', NotFound),
  page(
    '/',
    lazyRouteComponent(() => import('./pages/overview/overview.tsx'), 'Overview'),
  ),
  mail,
  page(
    '/messages/$messageId',
    lazyRouteComponent(() => import('./pages/mail/open-message.tsx'), 'OpenMessage'),
  ),
  page(
    '/sending',
    lazyRouteComponent(() => import('./pages/sending/submissions.tsx'), 'Submissions'),
  ),
  page(
    '/sending/$submissionId',
    lazyRouteComponent(() => import('./pages/sending/submission.tsx'), 'SubmissionLife'),
  ),
  page(
    '/domains',
    lazyRouteComponent(() => import('./pages/domains/domains.tsx'), 'Domains'),
  ),
  page(
    '/domains/$domainId',
    lazyRouteComponent(() => import('./pages/domains/domain.tsx'), 'DomainPage'),
  ),
  page(
    '/suppressions',
    lazyRouteComponent(() => import('./pages/suppressions/suppressions.tsx'), 'Suppressions'),
  ),
  page(
    '/complaints',
    lazyRouteComponent(() => import('./pages/suppressions/complaints.tsx'), 'Complaints'),
  ),
  page(
    '/validation',
    lazyRouteComponent(() => import('./pages/validation/validation.tsx'), 'Validation'),
  ),
  page(
    '/webhooks',
    lazyRouteComponent(() => import('./pages/webhooks/webhooks.tsx'), 'Webhooks'),
  ),
  page(
    '/webhooks/$webhookId',
    lazyRouteComponent(() => import('./pages/webhooks/webhook.tsx'), 'WebhookPage'),
  ),
  page(
    '/numbers',
    lazyRouteComponent(() => import('./pages/numbers/numbers.tsx'), 'Numbers'),
  ),
  captured,
  page(
    '/keys',
    lazyRouteComponent(() => import('./pages/keys/keys.tsx'), 'Keys'),
  ),
  page(
    '/members',
    lazyRouteComponent(() => import('./pages/members/members.tsx'), 'Members'),
  ),
  page(
    '/audit',
    lazyRouteComponent(() => import('./pages/audit/audit.tsx'), 'Audit'),
  ),
  page(
    '/settings',
    lazyRouteComponent(() => import('./pages/settings/settings.tsx'), 'Settings'),
  ),
]

/** Texts stay texts: `?q=123` is no number. */
function writeSearch(search: Record<string, unknown>): string {
  const given = Object.entries(search).filter(([, value]) => value !== undefined && value !== '')
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString()
  return text && `?${text}`
}

export const router = createRouter({
  routeTree: root.addChildren([...access, frame.addChildren(pages)]),
  defaultPreload: 'intent',
  defaultErrorComponent: Broken,
  defaultNotFoundComponent: NotFound,
  scrollRestoration: true,
  scrollToTopSelectors: ['#main'],
  parseSearch: (text) => Object.fromEntries(new URLSearchParams(text)),
  stringifySearch: writeSearch,
})

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router
  }
}
