// The dashboard role of a node: people, their sessions, and how they sign in.
import { formatAddress, type ListenAddress, reachable, sentContentMs } from '../config/setting-values.ts'
import { defaultLimits } from '../flow/accounts/organization.ts'
import { Guard } from '../flow/people/guard.ts'
import { allLetters, LetterLimits } from '../flow/people/letter-limits.ts'
import { Oidc } from '../flow/people/oidc.ts'
import { organizationLettersDue, sendOrganizationLetters } from '../flow/people/organization-letters.ts'
import { Passwords } from '../flow/people/passwords.ts'
import { Post } from '../flow/people/post.ts'
import { Sessions } from '../flow/people/sessions.ts'
import type { Acceptance } from '../flow/sending/accept-send.ts'
import { sendOwn } from '../flow/sending/send-own.ts'
import type { Foundation } from '../foundation.ts'
import type { ServerDeps } from '../http/server.ts'
import type { ParsePool } from '../mail/parse-pool.ts'
import { pagesFolder } from '../web/pages-folder.ts'
import type { DueWork } from '../worker/due-work.ts'
import type { Part } from './part.ts'

/** Limits of letters to people, all kinds together. */
const ownLimits = {
  ...defaultLimits,
  messagesPerMinute: allLetters.perMinute,
  messagesPerDay: allLetters.perDay,
  recipientsPerDay: allLetters.perDay,
}

/** Builds what the server needs to serve the dashboard. Letters to people are accepted like any other mail. */
export function createDashboard(
  {
    settings,
    db,
    clock,
    log,
    secretBox,
  }: Pick<Foundation, 'db' | 'clock' | 'log' | 'secretBox'> & {
    settings: Pick<
      Foundation['settings'],
      | 'isDevelopment'
      | 'delivery'
      | 'isSignUpOpen'
      | 'oidc'
      | 'defaultLimits'
      | 'managedDomain'
      | 'retention'
      | 'retryLifetimeMs'
      | 'workers'
    >
  },
  acceptance: Acceptance,
  parsePool: ParsePool,
): NonNullable<ServerDeps['dashboard']> {
  const { isDevelopment, isSignUpOpen, managedDomain } = settings
  const send = sendOwn.bind(null, { db, clock, acceptance, volume: 'counted' })
  const letterLimits = new LetterLimits({ db, clock, secretBox })
  const post = new Post({ db, clock, log, managedDomain, letterLimits, limits: ownLimits, sendOwn: send })
  return {
    letterLimits,
    sessions: new Sessions({ db, clock }),
    passwords: new Passwords(undefined, settings.workers),
    guard: new Guard({ db, clock, secretBox }),
    post,
    oidc: settings.oidc && new Oidc({ db, clock, log, isSignUpOpen, post }, settings.oidc),
    isDevelopment,
    isSignUpOpen,
    pagesFolder,
    parsePool,
    defaultLimits: settings.defaultLimits,
    sentContentMs: sentContentMs(settings),
    showsCaptured: isDevelopment && settings.delivery === 'capture',
  }
}

/** Starts to send letters about organizations. They link to `pages`, and to the desk at the `operator` address. */
export function startOrganizationLetters(
  { settings, db }: Pick<Foundation, 'settings' | 'db'>,
  dueWork: DueWork,
  post: Post,
  { pages, operator }: { pages: string; operator: ListenAddress },
): Part {
  const links = { pages, desk: `http://${formatAddress(reachable(operator))}/#/approvals` }
  const letters = { db, post, operatorMail: settings.operatorMail, links }
  const run = () => sendOrganizationLetters(letters)
  const loop = dueWork.createLoop(organizationLettersDue(settings), { name: 'send letters', run })
  loop.start()
  return loop
}
