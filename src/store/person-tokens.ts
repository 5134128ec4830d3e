// What is sent or printed as a link: by the digest of its secret, taken once.
import type { PersonId } from '../base/ids.ts'
import type { Tx } from '../postgres/db.ts'

export interface PersonToken {
  hash: Buffer
  purpose: 'confirm' | 'reset' | 'sign_in' | 'operator'
  /** Null for the operator's. */
  personId: PersonId | null
  createdAt: Date
  expiresAt: Date
}

export async function insertToken(tx: Tx, row: PersonToken): Promise<void> {
  await tx.query(
    'insert into person_token (token_hash, purpose, person_id, created_at, expires_at) values ($1, $2, $3, $4, $5)',
    [row.hash, row.purpose, row.personId, row.createdAt, row.expiresAt],
  )
}

/** Takes the token, which is gone then; null where there is none of the purpose that is still good. */
export async function takeToken(
  tx: Tx,
  hash: Buffer,
  purpose: PersonToken['purpose'],
  at: Date,
): Promise<{ personId: PersonId | null } | null> {
  const [row] = await tx.query<{ personId: PersonId | null; isGood: boolean }>(
    `delete from person_token where token_hash = $1 and purpose = $2
    returning person_id as "personId", expires_at > $3 as "isGood"`,
    [hash, purpose, at],
  )
  return row?.isGood ? { personId: row.personId } : null
}
