// Passkeys: the public half of the credentials with which people's devices sign in.
import type { PersonId } from '../../base/ids.ts'
import { Arguments } from '../../postgres/arguments.ts'
import type { Queryable, Tx } from '../../postgres/db.ts'

export interface PasskeyRow {
  id: string
  personId: PersonId
  credentialId: Buffer
  /** In COSE format. */
  publicKey: Buffer
  signCount: number
  transports: string[]
  name: string
  createdAt: Date
  lastUsedAt: Date | null
}

const columns = `id, person_id as "personId", credential_id as "credentialId", public_key as "publicKey",
  sign_count as "signCount", transports, name, created_at as "createdAt", last_used_at as "lastUsedAt"`

/** Adds a passkey. The constraint `passkey_credential_id_key` refuses a known one. */
export async function insertPasskey(tx: Tx, row: Omit<PasskeyRow, 'lastUsedAt'>): Promise<void> {
  const named = new Arguments({
    id: row.id,
    person_id: row.personId,
    credential_id: row.credentialId,
    public_key: row.publicKey,
    sign_count: row.signCount,
    transports: row.transports,
    name: row.name,
    created_at: row.createdAt,
  })
  await tx.query(named.insertInto('passkey'), named.values)
}

/** Lists a person's passkeys, oldest first. */
export async function listPasskeys(db: Queryable, personId: PersonId): Promise<PasskeyRow[]> {
  return await db.query<PasskeyRow>(
    `select ${columns} from passkey where person_id = $1 order by created_at, id`,
    [personId],
  )
}

/** Returns the passkey, locked until the transaction ends, so that its counter is compared and raised once. */
export async function lockPasskey(tx: Tx, credentialId: Buffer): Promise<PasskeyRow | null> {
  const [row] = await tx.query<PasskeyRow>(
    `select ${columns} from passkey where credential_id = $1 for update`,
    [credentialId],
  )
  return row ?? null
}

export async function notePasskeyUse(tx: Tx, id: string, signCount: number, at: Date): Promise<void> {
  await tx.query('update passkey set sign_count = $2, last_used_at = $3 where id = $1', [id, signCount, at])
}

/** Removes one of the person's passkeys. Returns its name, or null if there is none. */
export async function deletePasskey(tx: Tx, personId: PersonId, id: string): Promise<string | null> {
  const [row] = await tx.query<{ name: string }>(
    'delete from passkey where person_id = $1 and id = $2 returning name',
    [personId, id],
  )
  return row?.name ?? null
}
