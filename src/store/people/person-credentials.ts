// The proofs of a person's identity: a confirmed address, a password, an identity at a provider, mailed links.
import type { PersonId } from '../../base/ids.ts'
import type { Tx } from '../../postgres/db.ts'
import type { PersonRow } from './people.ts'

/**
 * Returns the person with this unproved address, added if there is none, locked until the transaction ends. Null if the
 * address is already proved. The person has no password yet: each sign-up stores its password with its link.
 */
export async function putUnconfirmed(
  tx: Tx,
  row: Pick<PersonRow, 'id' | 'email' | 'name' | 'createdAt'>,
): Promise<PersonId | null> {
  const [found] = await tx.query<{ id: PersonId }>(
    `insert into person as p (id, email, name, created_at) values ($1, $2, $3, $4)
    on conflict (email) do update set name = p.name where p.confirmed_at is null
    returning p.id`,
    [row.id, row.email, row.name, row.createdAt],
  )
  return found?.id ?? null
}

/** Returns the person, locked until the transaction ends. */
export async function lockPerson(tx: Tx, id: PersonId): Promise<PersonRow | null> {
  const [row] = await tx.query<PersonRow>(
    `select id, email, name, password_hash as "passwordHash", confirmed_at as "confirmedAt", created_at as "createdAt"
    from person where id = $1 for update`,
    [id],
  )
  return row ?? null
}

/** Locks the person, so that a reset of their password waits until the transaction ends. */
export async function holdPerson(tx: Tx, id: PersonId): Promise<void> {
  await tx.query('select from person where id = $1 for key share', [id])
}

/** Marks the person's address as proved, if it was not before. */
export async function confirmPerson(tx: Tx, id: PersonId, at: Date): Promise<void> {
  await tx.query('update person set confirmed_at = coalesce(confirmed_at, $2) where id = $1', [id, at])
}

/** Marks the person's address as proved again, by a mailed link. */
export async function proveAgain(tx: Tx, id: PersonId, at: Date): Promise<void> {
  await tx.query(
    'update person set confirmed_at = coalesce(confirmed_at, $2), proved_at = $2 where id = $1',
    [id, at],
  )
}

export async function updatePassword(tx: Tx, id: PersonId, passwordHash: string | null): Promise<void> {
  await tx.query('update person set password_hash = $2 where id = $1', [id, passwordHash])
}

export async function updatePersonName(tx: Tx, id: PersonId, name: string): Promise<void> {
  await tx.query('update person set name = $2 where id = $1', [id, name])
}

/** Finds the person linked to an identity provider's subject. */
export async function findPersonBySubject(tx: Tx, issuer: string, subject: string): Promise<PersonId | null> {
  const [row] = await tx.query<{ id: PersonId }>(
    'select id from person where oidc_issuer = $1 and oidc_subject = $2',
    [issuer, subject],
  )
  return row?.id ?? null
}

/** Links the person to the provider's subject; returns false if they are already linked to one. */
export async function linkSubject(
  tx: Tx,
  id: PersonId,
  { issuer, subject, at }: { issuer: string; subject: string; at: Date },
): Promise<boolean> {
  const rows = await tx.query(
    `update person set oidc_issuer = $2, oidc_subject = $3, oidc_linked_at = $4
    where id = $1 and oidc_subject is null returning id`,
    [id, issuer, subject, at],
  )
  return rows.length > 0
}
