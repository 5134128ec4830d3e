// Links that sign one person in once, printed at the start of a development deployment.
import type { Clock } from '../../base/clock.ts'
import { ServiceError } from '../../base/errors.ts'
import { newUuid, type OrganizationId, type PersonId } from '../../base/ids.ts'
import type { Db, Tx } from '../../postgres/db.ts'
import { findPersonByEmail, insertPerson, listMemberships } from '../../store/people/people.ts'
import { insertToken, takeToken } from '../../store/people/person-tokens.ts'
import { addMember } from './sessions.ts'
import { hashToken, newToken } from './tokens.ts'

type Deps = { db: Db; clock: Clock }

const linkMs = 86_400_000
const developer = { email: 'developer@localhost', name: 'Developer' }

/** The developer's organization, whatever its current name. Null if it no longer exists. */
export async function findDevelopment({ db }: Pick<Deps, 'db'>): Promise<OrganizationId | null> {
  const known = await findPersonByEmail(db, developer.email)
  const [first] = known ? await listMemberships(db, [known.id]) : []
  return first?.id ?? null
}

/** Makes a link that signs the developer in as an owner of the organization. Returns its secret. */
export async function linkDeveloper({ db, clock }: Deps, organizationId: OrganizationId): Promise<string> {
  const { token, hash } = newToken()
  const at = clock.now()
  await db.transaction(async (tx) => {
    const personId = await findDeveloper(tx, organizationId, at)
    const expiresAt = new Date(at.getTime() + linkMs)
    await insertToken(tx, { hash, purpose: 'sign_in', personId, createdAt: at, expiresAt })
  })
  return token
}

async function findDeveloper(tx: Tx, organizationId: OrganizationId, at: Date): Promise<PersonId> {
  const known = await findPersonByEmail(tx, developer.email)
  if (known) return known.id
  const id = newUuid<PersonId>()
  await insertPerson(tx, { ...developer, id, passwordHash: null, confirmedAt: at, createdAt: at })
  await addMember(tx, { organizationId, personId: id, email: developer.email, role: 'owner', at })
  return id
}

/** The person of the link, which is used up. */
export async function takeSignInLink({ db, clock }: Deps, token: string): Promise<PersonId> {
  const hash = hashToken(token)
  const taken = hash && (await db.transaction((tx) => takeToken(tx, hash, 'sign_in', clock.now())))
  if (!taken?.personId) throw new ServiceError('link_expired')
  return taken.personId
}
