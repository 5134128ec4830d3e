// All addresses with their pages, whose code is fetched when they are opened.
import { createRootRoute, createRoute, createRouter, Outlet, redirect } from '@tanstack/react-router'
import { queries } from './queries.ts'
import { Broken, BrokenAlone, NotFound } from './shell/failures.tsx'
import { type LoadPage, lazyPage } from './shell/lazy-page.ts'
import { sessionQuery } from './shell/session.ts'

/** The query string of an address. The page validates its texts. */
type Search = Record<string, string | undefined>

const root = createRootRoute({
  component: Outlet,
  errorComponent: BrokenAlone,
  validateSearch: (search): Search => search as Search,
})

const page = <Path extends string, Name extends string>(path: Path, name: Name, load: LoadPage<Name>) =>
  createRoute({ getParentRoute: () => frame, path, component: lazyPage(name, load) })

/** The pages behind the sign-in, for members of an organization that may act. */
const frame = createRoute({
  getParentRoute: () => root,
  id: 'frame',
  component: lazyPage('Frame', () => import('./shell/frame.tsx')),
  errorComponent: BrokenAlone,
  beforeLoad: async ({ location }) => {
    const session = await queries.ensureQueryData({ ...sessionQuery, revalidateIfStale: true })
    if (!session)
      throw redirect({ to: '/sign-in', search: location.href === '/' ? {} : { to: location.href } })
    if (session.organization?.status !== 'active') throw redirect({ to: '/pending' })
  },
})

const open = <Path extends string, Name extends string>(path: Path, name: Name, load: LoadPage<Name>) =>
  createRoute({ getParentRoute: () => root, path, component: lazyPage(name, load) })

const access = [
  open('/sign-in', 'SignIn', () => import('./pages/access/sign-in.tsx')),
  open('/sign-up', 'SignUp', () => import('./pages/access/sign-up.tsx')),
  open('/confirm', 'Confirmation', () => import('./pages/access/confirm.tsx')),
  open('/reset', 'Reset', () => import('./pages/access/reset.tsx')),
  open('/invitation', 'Invitation', () => import('./pages/access/invitation.tsx')),
  open('/pending', 'Pending', () => import('./pages/access/pending.tsx')),
]

/** The three columns stay while their content changes, because the page reads the ids from the address itself. */
const mailRoot = page('/mail', 'Mail', () => import('./pages/mail/mail.tsx'))
const mail = mailRoot.addChildren([
  createRoute({ getParentRoute: () => mailRoot, path: '/' }),
  createRoute({ getParentRoute: () => mailRoot, path: '/$inboxId' }),
  createRoute({ getParentRoute: () => mailRoot, path: '/$inboxId/$threadId' }),
])

/** The list stays while the mail next to it changes. */
const capturedRoot = page('/captured', 'Captured', () => import('./pages/captured/captured.tsx'))
const captured = capturedRoot.addChildren([
  createRoute({ getParentRoute: () => capturedRoot, path: '/' }),
  createRoute({ getParentRoute: () => capturedRoot, path: '/$capturedId' }),
])

const pages = [
  // An unknown address.
  page('$', 'NotFound', async () => ({ NotFound })),
  page('/', 'Overview', () => import('./pages/overview/overview.tsx')),
  mail,
  page('/messages/$messageId', 'OpenMessage', () => import('./pages/mail/open-message.tsx')),
  page('/sending', 'Submissions', () => import('./pages/sending/submissions.tsx')),
  page('/sending/$submissionId', 'SubmissionLife', () => import('./pages/sending/submission.tsx')),
  page('/domains', 'Domains', () => import('./pages/domains/domains.tsx')),
  page('/domains/$domainId', 'DomainPage', () => import('./pages/domains/domain.tsx')),
  page('/suppressions', 'Suppressions', () => import('./pages/suppressions/suppressions.tsx')),
  page('/complaints', 'Complaints', () => import('./pages/suppressions/complaints.tsx')),
  page('/validation', 'Validation', () => import('./pages/validation/validation.tsx')),
  page('/webhooks', 'Webhooks', () => import('./pages/webhooks/webhooks.tsx')),
  page('/webhooks/$webhookId', 'WebhookPage', () => import('./pages/webhooks/webhook.tsx')),
  page('/numbers', 'Numbers', () => import('./pages/numbers/numbers.tsx')),
  captured,
  page('/keys', 'Keys', () => import('./pages/keys/keys.tsx')),
  page('/members', 'Members', () => import('./pages/members/members.tsx')),
  page('/audit', 'Audit', () => import('./pages/audit/audit.tsx')),
  page('/settings', 'Settings', () => import('./pages/settings/settings.tsx')),
]

/** Keeps texts as texts: `?q=123` is not a number. */
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
