// `npm run test:faults -- --kills 50 --postgres-kills 10`: the fault campaign with its ledger; exit 1 on any violation. With
// `--mount` the disk of the blob folder goes and comes back instead, which takes a user who may mount.
import { parseArgs } from 'node:util'
import type { Scope } from '../support/until.ts'
import { runCampaign } from './campaign.ts'
import { type Ledger, printLedger } from './ledger.ts'
import { runMountLoss } from './mount.ts'

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '50' },
    'postgres-kills': { type: 'string', default: '10' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    mount: { type: 'boolean', default: false },
  },
})
const report = (line: string) => console.log(line)

async function runKills(scope: Scope): Promise<Ledger> {
  report(`seed ${values.seed}`)
  return await runCampaign(scope, {
    kills: Number(values.kills),
    postgresKills: Number(values['postgres-kills']),
    seed: Number(values.seed),
    report,
  })
}

const endings: (() => void | Promise<void>)[] = []
const scope: Scope = { after: (end) => void endings.push(end) }
try {
  const ledger = values.mount ? await runMountLoss(scope, { report }) : await runKills(scope)
  if (ledger) report(printLedger(ledger))
  else report('skipped: this user may not mount')
  process.exitCode = ledger && ledger.violations.length > 0 ? 1 : 0
} finally {
  for (const end of endings.reverse()) await end()
}
