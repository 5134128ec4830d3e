// What proves who a person is: a confirmed address, a password, an identity at a provider, links that were mailed.
import type { PersonId } from '../../base/ids.ts'
import type { Tx } from '../../postgres/db.ts'
import type { PersonRow } from './people.ts'

/**
 * The person whose address is not proved yet, added if there is none, held until the transaction ends; null if the address is
 * somebody's. They have no password: each sign-up keeps its own with its link.
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

/** The person, held until the transaction ends. */
export async function lockPerson(tx: Tx, id: PersonId): Promise<PersonRow | null> {
  const [row] = await tx.query<PersonRow>(
    `select id, email, name, password_hash as "passwordHash", confirmed_at as "confirmedAt", created_at as "createdAt"
    from person where id = $1 for update`,
    [id],
  )
  return row ?? null
}

/** Holds the person, so that a reset of their password waits until the transaction ends. */
export async function holdPerson(tx: Tx, id: PersonId): Promise<void> {
  await tx.query('select from person where id = $1 for key share', [id])
}

/** Their address is proved from now on, if it was not before. */
export async function confirmPerson(tx: Tx, id: PersonId, at: Date): Promise<void> {
  await tx.query('update person set confirmed_at = coalesce(confirmed_at, $2) where id = $1', [id, at])
}

/** Their address is proved anew by a mailed link. */
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

/** Who an identity provider's subject is here. */
export async function findPersonBySubject(tx: Tx, issuer: string, subject: string): Promise<PersonId | null> {
  const [row] = await tx.query<{ id: PersonId }>(
    'select id from person where oidc_issuer = $1 and oidc_subject = $2',
    [issuer, subject],
  )
  return row?.id ?? null
}

/** Links the person to the provider's subject; false where they are linked to one already. */
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
