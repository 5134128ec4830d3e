// The operator's access to the desk: a link that opens it once, and the resulting session.
import type { Clock } from '../../base/clock.ts'
import { ServiceError } from '../../base/errors.ts'
import { newUuid } from '../../base/ids.ts'
import type { Db } from '../../postgres/db.ts'
import {
  endOperatorSession,
  findOperatorSession,
  insertOperatorSession,
} from '../../store/people/operator-sessions.ts'
import { insertToken, takeToken } from '../../store/people/person-tokens.ts'
import { operator, recordAction } from '../audit.ts'
import { hashToken, newToken, pageToken } from './tokens.ts'

/** The lifetime of a link to the desk. */
export const linkMs = 15 * 60_000
/** Applies even while the operator works, so that a forgotten desk closes by itself. */
export const deskSessionMs = 12 * 3_600_000
const maxUserAgent = 300

interface Deps {
  db: Db
  clock: Clock
}

export interface DeskSession {
  /** The token that a page must send together with the cookie to change anything. */
  csrfToken: string
  createdAt: Date
  endsAt: Date
}

/** Makes the token after the `#` of a link to the desk. */
export async function createDeskLink({ db, clock }: Deps): Promise<{ token: string; expiresAt: Date }> {
  const { token, hash } = newToken()
  const createdAt = clock.now()
  const expiresAt = new Date(createdAt.getTime() + linkMs)
  await db.transaction((tx) =>
    insertToken(tx, { hash, purpose: 'operator', personId: null, createdAt, expiresAt }),
  )
  return { token, expiresAt }
}

/**
 * Exchanges a link's token for a session. Throws `link_expired` if the token is invalid. Only this answer has the cookie.
 */
export async function openDesk(
  { db, clock }: Deps,
  linkToken: string,
  { ip, userAgent }: { ip: string; userAgent: string },
): Promise<{ cookie: string; session: DeskSession }> {
  const linkHash = hashToken(linkToken)
  const { token, hash } = newToken()
  const at = clock.now()
  const row = { id: newUuid(), ip, userAgent: userAgent.slice(0, maxUserAgent), createdAt: at }
  const isTaken = await db.transaction(async (tx) => {
    if (!linkHash || !(await takeToken(tx, linkHash, 'operator', at))) return false
    await insertOperatorSession(tx, row, hash)
    await recordAction(tx, null, { ...operator, ip }, { action: 'desk.opened', subject: 'desk', at })
    return true
  })
  if (!isTaken) throw new ServiceError('link_expired')
  return { cookie: token, session: sessionOf(token, at) }
}

/** The session of a cookie, or null if there is no valid one. */
export async function readDesk({ db, clock }: Deps, cookie: string): Promise<DeskSession | null> {
  const hash = hashToken(cookie)
  const row = hash && (await findOperatorSession(db, hash, sinceFor(clock)))
  return row && sessionOf(cookie, row.createdAt)
}

/** Ends the cookie's session. */
export async function closeDesk({ db, clock }: Deps, cookie: string): Promise<void> {
  const hash = hashToken(cookie)
  if (hash) await db.transaction((tx) => endOperatorSession(tx, hash, sinceFor(clock)))
}

function sinceFor(clock: Clock): Date {
  return new Date(clock.nowMs() - deskSessionMs)
}

function sessionOf(cookie: string, createdAt: Date): DeskSession {
  return {
    csrfToken: pageToken(cookie),
    createdAt,
    endsAt: new Date(createdAt.getTime() + deskSessionMs),
  }
}
