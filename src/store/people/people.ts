// People who sign in, and the organizations of which they are members.
import type { KeyId, OrganizationId, PersonId } from '../../base/ids.ts'
import type { Queryable, Tx } from '../../postgres/db.ts'
import type { OrganizationRow } from '../accounts/organizations.ts'

export type MemberRole = 'owner' | 'member' | 'viewer'

export interface PersonRow {
  id: PersonId
  /** Lower case, the domain in ASCII. */
  email: string
  name: string
  passwordHash: string | null
  confirmedAt: Date | null
  createdAt: Date
}

export interface MembershipRow {
  id: OrganizationId
  name: string
  status: Exclude<OrganizationRow['status'], 'deleting'>
  role: MemberRole
  /** Whether its members may make server keys. */
  serverKeys: boolean
  keyId: KeyId
}

const columns = `id, email, name, password_hash as "passwordHash", confirmed_at as "confirmedAt", created_at as "createdAt"`

export async function insertPerson(tx: Tx, row: PersonRow): Promise<void> {
  await tx.query(
    `insert into person (id, email, name, password_hash, confirmed_at, created_at) values ($1, $2, $3, $4, $5, $6)`,
    [row.id, row.email, row.name, row.passwordHash, row.confirmedAt, row.createdAt],
  )
}

export async function findPerson(db: Queryable, id: string): Promise<PersonRow | null> {
  const [row] = await db.query<PersonRow>(`select ${columns} from person where id = $1`, [id])
  return row ?? null
}

export async function findPersonByEmail(db: Queryable, email: string): Promise<PersonRow | null> {
  const [row] = await db.query<PersonRow>(`select ${columns} from person where email = $1`, [email])
  return row ?? null
}

/** Adds a member. The key is the member's own, and must already exist. */
export async function insertMember(
  tx: Tx,
  row: {
    organizationId: OrganizationId
    personId: PersonId
    role: MemberRole
    keyId: KeyId
    createdAt: Date
  },
): Promise<void> {
  await tx.query(
    'insert into member (organization_id, person_id, role, key_id, created_at) values ($1, $2, $3, $4, $5)',
    [row.organizationId, row.personId, row.role, row.keyId, row.createdAt],
  )
}

/** Lists the organizations of these people that are not being deleted, the oldest membership of each first. */
export async function listMemberships(
  db: Queryable,
  personIds: readonly PersonId[],
): Promise<(MembershipRow & { personId: PersonId })[]> {
  return await db.query<MembershipRow & { personId: PersonId }>(
    `select m.person_id as "personId", o.id, o.name, o.status, m.role, o.server_keys as "serverKeys", m.key_id as "keyId"
    from member m join organization o on o.id = m.organization_id
    where m.person_id = any($1) and o.status not in ('deleting', 'deleted') order by m.created_at, o.id`,
    [personIds],
  )
}
