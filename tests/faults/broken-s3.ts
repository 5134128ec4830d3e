// S3 breaks under load: it is slow, fails every third call, cuts and changes uploads, forgets what it has acknowledged.
// Large mail is refused if S3 does not have it, and kept otherwise. An object that S3 loses later is named.
import { ownProgram, run } from '../support/command.ts'
import { type S3Faults, startS3 } from '../support/s3.ts'
import { createCaller, startPosthorn } from '../support/service.ts'
import type { Scope } from '../support/until.ts'
import { LargeLoad, reckonLarge } from './large-load.ts'
import type { Ledger } from './ledger.ts'

interface S3Fault {
  name: string
  faults: Partial<S3Faults>
  /** Whether large mail is refused meanwhile. Without it, a busy machine may refuse some. */
  isRefusing?: boolean
}

const ofBlobs = /\/[0-9a-f]{2}\/[0-9a-f-]{36}/

export const s3Faults: S3Fault[] = [
  { name: '500 to every third call', faults: { failEvery: 3 } },
  { name: 'one second for each call', faults: { delayMs: 1_000 }, isRefusing: false },
  { name: 'ten uploads cut', faults: { cutUploads: 10 }, isRefusing: false },
  { name: 'ten answers cut', faults: { cutAnswers: 10 }, isRefusing: false },
  { name: '503 to every call', faults: { refuse: () => true }, isRefusing: true },
  { name: 'acknowledges and forgets each upload', faults: { lose: ofBlobs }, isRefusing: true },
  { name: 'ten uploads changed', faults: { changeUploads: 10 }, isRefusing: false },
  { name: 'twelve seconds for each call', faults: { delayMs: 12_000 }, isRefusing: true },
]

interface Options {
  faults: readonly S3Fault[]
  rounds: number
  report: (line: string) => void
}

/** Two workers on S3. Everything ends with the scope. */
export async function runBrokenS3(scope: Scope, { faults, rounds, report }: Options): Promise<Ledger> {
  const s3 = await startS3(scope)
  const posthorn = await startPosthorn(scope, {
    env: {
      ...s3.env,
      POSTHORN_BLOB_URL: s3.makeUrl(),
      POSTHORN_WORKERS: '2',
      POSTHORN_DELIVERY: 'capture',
      POSTHORN_RETRY_SCHEDULE: '1s,2s',
    },
  })
  const { api } = await createCaller(posthorn)
  const inbox = await api.createInbox()
  const load = new LargeLoad({ posthorn, api, inbox, timeoutMs: 90_000 })
  scope.after(() => load.stop())
  const { book } = load
  await load.untilAccepted('large mail before the faults')
  for (const fault of Array.from({ length: rounds }, () => faults).flat()) {
    const before = { accepted: load.accepted, refused: load.refused, atMs: Date.now() }
    Object.assign(s3.faults, fault.faults)
    await load.untilMore(`answers at ${fault.name}`)
    s3.heal()
    const refused = load.refused - before.refused
    const seconds = ((Date.now() - before.atMs) / 1_000).toFixed(1)
    report(`${fault.name}: ${load.accepted - before.accepted} accepted, ${refused} refused in ${seconds} s`)
    const isExpected = fault.isRefusing === undefined || fault.isRefusing === refused > 0
    if (!isExpected) book.surprises.push(`${fault.name}: ${refused} were refused`)
    await load.untilAccepted(`large mail after ${fault.name}`)
  }
  await load.stop()
  const ledger = await reckonLarge(api, inbox, book)
  const [lost] = s3.listObjects(ofBlobs)
  s3.removeObject(lost!)
  const { stdout } = await run(ownProgram, ['doctor', '--json'], posthorn.env, posthorn.folder)
  if (!stdout.includes(lost!.split('/').at(-1)!))
    ledger.violations.push(`doctor does not name the lost object ${lost}`)
  const status = await posthorn.stop()
  if (status !== 0) ledger.violations.push(`SIGTERM at the end gave exit status ${status}`)
  return {
    figures: [['faults of S3', rounds * faults.length], ...ledger.figures],
    violations: ledger.violations,
  }
}
