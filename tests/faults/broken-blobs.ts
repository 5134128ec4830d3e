// The disk of the blob folder breaks under load: calls fail with EIO, or do half of their work. Large mail is refused
// meanwhile, never torn and never lost, and goes on by itself.
import { join } from 'node:path'
import { newUuid } from '../../src/base/ids.ts'
import { createCaller, startPosthorn } from '../support/service.ts'
import { type Scope, until } from '../support/until.ts'
import { FaultyIo, type IoFault } from './faulty-io.ts'
import { LargeLoad, reckonLarge } from './large-load.ts'
import type { Ledger } from './ledger.ts'

interface BlobFault extends Omit<IoFault, 'part'> {
  name: string
  /** Only files of blobs, without the marks among them. */
  isOfBlobs?: true
  /** Whether large mail is refused meanwhile. */
  isRefusing: boolean
}

export const blobFaults: BlobFault[] = [
  { name: 'EIO at each write', operation: 'write', isRefusing: true },
  { name: 'EIO at every third write', operation: 'write', every: 3, isRefusing: true },
  { name: 'half of each second write', operation: 'write', kind: 'short', every: 2, isRefusing: false },
  { name: 'EIO after half of a write', operation: 'write', kind: 'torn', every: 2, isRefusing: true },
  { name: 'EIO at each fsync', operation: 'sync', isRefusing: true },
  { name: 'EIO at every fifth fsync', operation: 'sync', every: 5, isRefusing: true },
  { name: 'EIO at each open', operation: 'open', isRefusing: true },
  { name: 'EIO at every fourth open', operation: 'open', every: 4, isRefusing: true },
  { name: 'EIO at each read', operation: 'read', isRefusing: true },
  { name: 'EIO at each read of a message', operation: 'read', isOfBlobs: true, isRefusing: false },
  {
    name: 'half of each read of a message',
    operation: 'read',
    kind: 'short',
    isOfBlobs: true,
    isRefusing: false,
  },
]

interface Options {
  faults: readonly BlobFault[]
  rounds: number
  report: (line: string) => void
}

export async function runBrokenBlobs(scope: Scope, { faults, rounds, report }: Options): Promise<Ledger> {
  const io = new FaultyIo(scope)
  const posthorn = await startPosthorn(scope, {
    env: { ...io.env, POSTHORN_DELIVERY: 'capture', POSTHORN_RETRY_SCHEDULE: '1s,2s' },
  })
  const { api } = await createCaller(posthorn)
  const inbox = await api.createInbox()
  const load = new LargeLoad({ posthorn, api, inbox })
  scope.after(() => load.stop())
  const folder = join(posthorn.folder, 'blobs/')
  // The ids of this year begin with the same digits.
  const blob = `/${newUuid().slice(0, 3)}`
  const { book } = load
  await load.untilAccepted('large mail before the faults')
  for (const fault of Array.from({ length: rounds }, () => faults).flat()) {
    const before = { accepted: load.accepted, refused: load.refused }
    io.begin({ ...fault, part: fault.isOfBlobs ? blob : folder })
    await load.untilMore(`answers at ${fault.name}`)
    await until(`calls to fail at ${fault.name}`, () => io.hits > 0)
    const { hits } = io
    const refused = load.refused - before.refused
    io.end()
    report(`${fault.name}: ${hits} calls, ${load.accepted - before.accepted} accepted, ${refused} refused`)
    if (fault.isRefusing !== refused > 0) book.surprises.push(`${fault.name}: ${refused} were refused`)
    await load.untilAccepted(`large mail after ${fault.name}`)
  }
  await load.stop()
  const ledger = await reckonLarge(api, inbox, book)
  const status = await posthorn.stop()
  if (status !== 0) ledger.violations.push(`SIGTERM at the end gave exit status ${status}`)
  return {
    figures: [['faults of the disk', rounds * faults.length], ...ledger.figures],
    violations: ledger.violations,
  }
}
