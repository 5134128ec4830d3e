// Tokens that are mailed or printed as links, by the digest of their secret, each used once.
import type { PersonId } from '../../base/ids.ts'
import type { Queryable, Tx } from '../../postgres/db.ts'

export interface PersonToken {
  hash: Buffer
  purpose: 'confirm' | 'reset' | 'sign_in' | 'operator'
  /** Null for an operator's token, and for a token for an address. */
  personId: PersonId | null
  /** The address, if the token is for the person who has it when the token is used. */
  email?: string
  /** The data that a sign-up's link confirms. */
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
 * The person a token is for: the person it names, or the one with its address. Security: not a person who proved that
 * address later. A link mailed to an address without an account may have been passed on, because it could do nothing then.
 */
const holder = `coalesce(person_id, (select id from person p where p.email = person_token.email
  and (p.confirmed_at is null or p.confirmed_at <= person_token.created_at)))`

/** Returns the person the token is for; null if there is no valid token of the purpose. */
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

/** Takes the token and deletes it; null if there is no valid token of the purpose. */
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

/** Deletes all links of the purpose that were sent to the person or their address. */
export async function deleteTokens(tx: Tx, personId: PersonId, purpose: 'confirm' | 'reset'): Promise<void> {
  await tx.query(
    `delete from person_token where purpose = $2
    and (person_id = $1 or email = (select email from person where id = $1))`,
    [personId, purpose],
  )
}
