// `npm test`: types, lint and unused code, then tests: of a tier, by name, or those that a change can affect.
import { globSync } from 'node:fs'
import { relative, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { affectedSince } from './testing/changed.ts'
import { runChecks } from './testing/checks.ts'
import { overPostgres, runOnce, runSteadily } from './testing/run.ts'
import { filesOf, root, type Tier, tiers } from './testing/tiers.ts'

const help = `usage: npm test -- [options] [FILE...]

Runs the checks of npm run check and the tests of the quick tier; with a FILE, its tests alone.

  --tier TIER      quick, long or sql; several run one after the other
                   quick: everything that one process and one PostgreSQL can show, and one story of the browser
                   long: whole programs, browsers, other mail servers, deployments, faults, fuzz
                   sql: the tests that also run on PostgreSQL 15; POSTHORN_TEST_DATABASE_URL names the server
  --changed        only the tests that uncommitted changes can affect
  --since REV      only the tests that changes since the revision can affect
  --steady ROUNDS  runs the tests so many times next to three busy loops, and prints how often each file passed
  --help`

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    tier: { type: 'string', multiple: true, default: ['quick'] },
    changed: { type: 'boolean', default: false },
    since: { type: 'string' },
    steady: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})

if (values.help) exit(0, help)
for (const tier of values.tier) if (!isTier(tier)) exit(2, `no tier is called ${tier}\n\n${help}`)
const rounds = values.steady === undefined ? null : Number(values.steady)
if (rounds !== null && !(Number.isInteger(rounds) && rounds > 0)) exit(2, help)
const revision = values.since ?? (values.changed ? 'HEAD' : null)

const parts = positionals.length > 0 ? [namedPart()] : values.tier.filter(isTier).map(tierPart)
const needsChecks = rounds === null && parts.some(({ name }) => name === 'quick')
const checksPassed = !needsChecks || (await runChecks())
const testsPassed = await overPostgres(async () => {
  const results: string[] = []
  let passed = true
  for (const { name, files } of parts) {
    const startedMs = performance.now()
    const partPassed = await (rounds === null ? runOnce(files) : runSteadily(files, rounds))
    const seconds = ((performance.now() - startedMs) / 1000).toFixed(0)
    results.push(`${partPassed ? '✔' : '✖ FAILED:'} ${name}: ${files.length} files, ${seconds} s`)
    passed &&= partPassed
  }
  for (const result of results) console.log(result)
  return passed
})
if (!checksPassed) console.error('✖ the tests are above; before them types, lint or unused code FAILED')
process.exit(checksPassed && testsPassed ? 0 : 1)

interface Part {
  name: string
  files: string[]
}

function namedPart(): Part {
  const files = globSync(positionals, { cwd: root }).map((file) => relative(root, resolve(root, file)))
  if (files.length === 0) exit(2, `no test file matches ${positionals.join(' ')}`)
  return { name: 'named files', files: files.sort() }
}

function tierPart(tier: Tier): Part {
  const files = filesOf(tier)
  return { name: tier, files: revision === null ? files : affectedSince(revision, files) }
}

function isTier(name: string): name is Tier {
  return (tiers as readonly string[]).includes(name)
}

function exit(status: number, text: string): never {
  console[status === 0 ? 'log' : 'error'](text)
  process.exit(status)
}
