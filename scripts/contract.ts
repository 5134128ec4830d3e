// `npm run contract [-- --session]`: proves the promises of the API, or those of its dashboard side.
// Prints one line for each operation, status and code, with the test that proves it.
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { run } from 'node:test'
import { silentLog } from '../src/base/log.ts'
import { useEmbedded } from '../src/postgres/embedded/use-embedded.ts'
import { ApiDocument } from '../tests/contract/document.ts'
import { mark, type Proof, wanted } from '../tests/contract/prove.ts'
import { listRequired, type Required } from '../tests/contract/required.ts'
import { setStage } from '../tests/http/stage.ts'

const root = resolve(import.meta.dirname, '..')
const testLimitMs = 5 * 60_000

interface Outcome {
  proofs: Proof[]
  /** Failures of tests that prove nothing: whole files, the order of checks. */
  failures: string[]
}

/** Reads the specification and the decisions. Null in a clone without them. */
function readTexts(): { specification: string; decisions: string } | null {
  const read = (name: string) => readFileSync(resolve(root, '../shared/spec', name), 'utf8')
  try {
    return { specification: read('specification.md'), decisions: read('decisions.md') }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

async function readRequired(): Promise<Required[]> {
  const texts = readTexts()
  if (!texts)
    console.log(
      'The specification is not beside this folder: what must be proved is the OpenAPI document alone.',
    )
  const endings: (() => void | Promise<void>)[] = []
  const stage = await setStage({ after: (end) => void endings.push(end) })
  try {
    return listRequired(texts, (await ApiDocument.fetch(stage.base)).operations)
  } finally {
    for (const end of endings.reverse()) await end()
  }
}

async function runProofs(files: string[]): Promise<Outcome> {
  const outcome: Outcome = { proofs: [], failures: [] }
  const events = run({ files, concurrency: 2, timeout: testLimitMs })
  events.on('test:diagnostic', ({ message }) => {
    if (message.startsWith(mark)) outcome.proofs.push(JSON.parse(message.slice(mark.length)))
  })
  events.on('test:fail', ({ name, details, todo }) => {
    if (todo) return
    const cause = details.error.cause
    outcome.failures.push(`${name}\n    ${String(cause instanceof Error ? cause.message : cause)}`)
  })
  // The stream stops if it has no reader.
  for await (const _ of events);
  return outcome
}

const sameAs = (required: Required) => (proof: Proof) =>
  proof.operation === required.operation &&
  proof.status === required.status &&
  (required.code === null || proof.code === required.code)

/** Prints a line for each proof, in the order of the requirements. Returns whether all are proved. */
function print(required: Required[], { proofs, failures }: Outcome): boolean {
  const unprinted = new Set(proofs)
  let proved = 0
  let missing = 0
  for (const one of required) {
    const found = proofs.filter(sameAs(one))
    if (found.some(({ passed }) => passed)) proved++
    if (found.length === 0) {
      missing++
      console.log([one.operation, one.status, one.code ?? '-', 'MISSING', '✖'].join('  '))
    }
    for (const proof of found) if (unprinted.delete(proof)) printProof(proof)
  }
  // Empty, unless the document has promises that were not required.
  for (const proof of unprinted) printProof(proof)
  for (const failure of failures) console.log(`✖ ${failure}`)
  console.log(`${proved} proved, ${missing} missing`)
  console.log(`${proofs.filter(({ passed }) => passed).length} passed, ${failures.length} failed`)
  return proved === required.length && failures.length === 0
}

function printProof({ operation, status, code, how, place, passed }: Proof): void {
  console.log([operation, status, code ?? '-', how, place, passed ? '✔' : '✖'].join('  '))
}

const folder = mkdtempSync(join(tmpdir(), 'posthorn-contract-'))
const directory = join(folder, 'postgres')
const server = await useEmbedded({ directory, log: silentLog })
// The test processes and this process's own stage share one PostgreSQL.
process.env['POSTHORN_TEST_POSTGRES'] = directory
process.env[wanted] = '1'
if (process.argv.includes('--session')) process.env['POSTHORN_TEST_AS'] = 'session'
try {
  const required = await readRequired()
  const outcome = await runProofs(
    globSync('tests/contract/*.test.ts', { cwd: root })
      .sort()
      .map((file) => join(root, file)),
  )
  process.exitCode = print(required, outcome) ? 0 : 1
} finally {
  await server.release()
  rmSync(folder, { recursive: true, force: true })
}
