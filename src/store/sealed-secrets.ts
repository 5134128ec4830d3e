// Every kind of sealed secret and its column, so that all can be sealed again when the secret key changes.
import type { Queryable, Tx } from '../postgres/db.ts'

/** `context`: the SQL of the text that a secret is bound to when sealed. `matches` finds its row by `$1`, with an index. */
const kinds = {
  'DKIM key': {
    table: 'dkim_key',
    column: 'sealed_key',
    context: `selector || '._domainkey.' || domain`,
    matches: `domain = split_part($1, '._domainkey.', 2) and selector = split_part($1, '._domainkey.', 1)`,
  },
  'webhook secret': { table: 'webhook', column: 'sealed_secret', context: 'id', matches: 'id = $1' },
  'former webhook secret': {
    table: 'webhook',
    column: 'sealed_previous_secret',
    context: 'id',
    matches: 'id = $1',
  },
  'account key': {
    table: 'acme_account',
    column: 'sealed_key',
    context: 'directory',
    matches: 'directory = $1',
  },
  'certificate key': {
    table: 'acme_account',
    column: 'sealed_certificate_key',
    context: 'chain',
    matches: 'chain = $1',
  },
  verifiers: {
    table: 'former_secret_key',
    column: 'sealed_verifiers',
    context: `encode(key_check, 'hex')`,
    matches: `key_check = decode($1, 'hex')`,
  },
} as const

export type SecretKind = keyof typeof kinds
export const secretKinds = Object.keys(kinds) as SecretKind[]

export interface SealedSecret {
  context: string
  sealed: Buffer
}

const batchSize = 200

/** Reads every secret of a kind, in batches. */
export async function* eachSealed(db: Queryable, kind: SecretKind): AsyncGenerator<SealedSecret> {
  let after = ''
  for (;;) {
    const secrets = await listSealed(db, kind, after, batchSize)
    yield* secrets
    if (secrets.length < batchSize) return
    after = secrets.at(-1)!.context
  }
}

/** Lists secrets of one kind after `after`, in the order of their contexts. Skips empty ones, which were deleted. */
async function listSealed(
  db: Queryable,
  kind: SecretKind,
  after: string,
  limit: number,
): Promise<SealedSecret[]> {
  const { table, column, context } = kinds[kind]
  return await db.query<SealedSecret>(
    `select ${context} as context, ${column} as sealed from ${table}
    where ${context} > $1 and length(${column}) > 0 order by 1 limit $2`,
    [after, limit],
  )
}

/** Replaces the secret, unless it has changed since it was read. */
export async function replaceSealed(
  tx: Tx,
  kind: SecretKind,
  { context, sealed }: SealedSecret,
  next: Buffer,
): Promise<void> {
  const { table, column, matches } = kinds[kind]
  await tx.query(`update ${table} set ${column} = $3 where ${matches} and ${column} = $2`, [
    ...[context, sealed, next],
  ])
}
