// What is sent or printed as a link: by the digest of its secret, taken once.
import type { PersonId } from '../../base/ids.ts'
import type { Queryable, Tx } from '../../postgres/db.ts'

export interface PersonToken {
  hash: Buffer
  purpose: 'confirm' | 'reset' | 'sign_in' | 'operator'
  /** Null for the operator's, and for one that is for an address. */
  personId: PersonId | null
  /** It is for whoever has this address once it is used. */
  email?: string
  /** Of a sign-up: what its link confirms. */
  signUp?: SignUp
  createdAt: Date
  expiresAt: Date
}

export interface SignUp {
  name: string
  passwordHash: string
}

export async function insertToken(tx: Tx, row: PersonToken): Promise<void> {
  await tx.query(
    `insert into person_token (token_hash, purpose, person_id, email, created_at, expires_at, name, password_hash)
    values ($1, $2, $3, $4, $5, $6, $7, $8)`,
    [
      ...[row.hash, row.purpose, row.personId, row.email ?? null, row.createdAt, row.expiresAt],
      ...[row.signUp?.name ?? null, row.signUp?.passwordHash ?? null],
    ],
  )
}

/**
 * Whom a token is for: the person that it names, or who has its address. Security: not who has proved that address since, for
 * a link that was mailed to nobody may have been passed on as harmless.
 */
const holder = `coalesce(person_id, (select id from person p where p.email = person_token.email
  and (p.confirmed_at is null or p.confirmed_at <= person_token.created_at)))`

/** Whom the token is for; null where there is none of the purpose that is still good. */
export async function findToken(
  db: Queryable,
  hash: Buffer,
  purpose: PersonToken['purpose'],
  at: Date,
): Promise<{ personId: PersonId | null } | null> {
  const [row] = await db.query<{ personId: PersonId | null }>(
    `select ${holder} as "personId" from person_token where token_hash = $1 and purpose = $2 and expires_at > $3`,
    [hash, purpose, at],
  )
  return row ?? null
}

/** Takes the token, which is gone then; null where there is none of the purpose that is still good. */
export async function takeToken(
  tx: Tx,
  hash: Buffer,
  purpose: PersonToken['purpose'],
  at: Date,
): Promise<{ personId: PersonId | null; signUp: SignUp | null } | null> {
  const [row] = await tx.query<{
    personId: PersonId | null
    isGood: boolean
    name: string | null
    passwordHash: string | null
  }>(
    `delete from person_token where token_hash = $1 and purpose = $2
    returning ${holder} as "personId", expires_at > $3 as "isGood", name, password_hash as "passwordHash"`,
    [hash, purpose, at],
  )
  if (!row?.isGood) return null
  const { personId, name, passwordHash } = row
  return { personId, signUp: name !== null && passwordHash !== null ? { name, passwordHash } : null }
}

/** Ends all links of the purpose that the person, or their address, was sent. */
export async function deleteTokens(tx: Tx, personId: PersonId, purpose: 'confirm' | 'reset'): Promise<void> {
  await tx.query(
    `delete from person_token where purpose = $2
    and (person_id = $1 or email = (select email from person where id = $1))`,
    [personId, purpose],
  )
}
