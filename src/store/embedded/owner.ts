// The account PostgreSQL runs under: ours, or an unprivileged one when we are root, as PostgreSQL refuses root.
import { readFile, stat } from 'node:fs/promises'
import { EmbeddedError } from './embedded-error.ts'

export interface Owner {
  uid: number
  gid: number
}

const accounts = ['posthorn', 'postgres', 'nobody']
const nobody: Owner = { uid: 65_534, gid: 65_534 }

/**
 * The account to run PostgreSQL under: null for our own. As root it is the one that the existing cluster belongs to, so
 * that an account made later changes nothing; for a new cluster the first of `posthorn`, `postgres`, `nobody`.
 */
export async function chooseOwner(cluster: string): Promise<Owner | null> {
  const existing = await stat(cluster).catch(() => null)
  const ownUid = process.getuid?.()
  if (ownUid !== 0) {
    if (existing && ownUid !== undefined && existing.uid !== ownUid) {
      throw new EmbeddedError(
        `${cluster} belongs to uid ${existing.uid} and we are uid ${ownUid}: run as that user or as root, or 'chown -R' the data folder`,
      )
    }
    return null
  }
  if (!existing) return accountForNewCluster()
  if (existing.uid !== 0) return { uid: existing.uid, gid: existing.gid }
  const { uid, gid } = await accountForNewCluster()
  throw new EmbeddedError(
    `${cluster} belongs to root, which PostgreSQL refuses: run 'chown -R ${uid}:${gid} ${cluster}'`,
  )
}

async function accountForNewCluster(): Promise<Owner> {
  const lines = (await readFile('/etc/passwd', 'utf8').catch(() => '')).split('\n')
  const entries = lines.map((line) => line.split(':'))
  for (const account of accounts) {
    const entry = entries.find(([name]) => name === account)
    const owner = { uid: Number(entry?.[2]), gid: Number(entry?.[3]) }
    if (owner.uid > 0 && owner.gid > 0) return owner
  }
  return nobody
}
