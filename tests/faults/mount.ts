// Under load, a lazy unmount removes the disk of the blob folder and it returns: acknowledged large mail keeps every byte.
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createCaller, type Posthorn, startPosthorn } from '../support/service.ts'
import { type Scope, until } from '../support/until.ts'
import { LargeLoad, reckonLarge } from './large-load.ts'
import type { Ledger } from './ledger.ts'

const rounds = 3

/** Null if this user may not mount. */
export async function runMountLoss(
  scope: Scope,
  { report }: { report: (line: string) => void },
): Promise<Ledger | null> {
  const disk = mountableDisk(scope)
  if (!disk) return null
  const posthorn = await startPosthorn(scope, {
    env: {
      POSTHORN_BLOB_URL: `file:${disk.folder}`,
      POSTHORN_DELIVERY: 'capture',
      POSTHORN_RETRY_SCHEDULE: '1s,2s',
    },
  })
  const { api } = await createCaller(posthorn)
  const inbox = await api.createInbox()
  const load = new LargeLoad({ posthorn, api, inbox })
  const { book } = load
  for (let round = 1; round <= rounds; round++) {
    await load.untilMore('large mail with the disk')
    disk.unmount()
    await untilReady(posthorn, 503)
    await load.untilMore('large mail without the disk')
    const below = filesBelow(disk.folder)
    if (below.length > 0) book.surprises.push(`below the mount point was written: ${below.join(', ')}`)
    disk.mount()
    await untilReady(posthorn, 200)
    report(`round ${round}: ${book.mails.size} times 250, ${book.sends.size} times 202`)
  }
  await load.untilMore('large mail at the end')
  await load.stop()
  const ledger = await reckonLarge(api, inbox, book)
  return { figures: [['lazy unmounts under load', rounds], ...ledger.figures], violations: ledger.violations }
}

/** A folder with a second one mounted on it, by a bind mount. Null if this user may not mount. */
function mountableDisk(scope: Scope): { folder: string; mount(): void; unmount(): void } | null {
  const above = mkdtempSync(join(tmpdir(), 'posthorn-mount-'))
  const [disk, folder] = [join(above, 'disk'), join(above, 'blobs')]
  for (const made of [disk, folder]) mkdirSync(made)
  const words = ['--bind', disk, folder]
  const isMounted = () => statSync(folder).ino === statSync(disk).ino
  scope.after(() => {
    while (isMounted()) execFileSync('umount', ['-l', folder])
    rmSync(above, { recursive: true, force: true })
  })
  if (spawnSync('mount', words).status !== 0) return null
  return {
    folder,
    mount: () => void execFileSync('mount', words),
    unmount: () => void execFileSync('umount', ['-l', folder]),
  }
}

/**
 * Paths of the files below the folder. The service may make an empty shard folder there between its check of the mark and
 * the unmount. Mail must never be there, because the mount would hide it.
 */
function filesBelow(folder: string): string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
  return entries.filter((entry) => !entry.isDirectory()).map(({ parentPath, name }) => join(parentPath, name))
}

async function untilReady({ operator }: Posthorn, status: number): Promise<void> {
  await until(`/readyz to be ${status}`, async () => (await fetch(`${operator}/readyz`)).status === status)
}
