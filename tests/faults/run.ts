// `npm run test:faults -- --kills 50 --postgres-kills 10`: the fault campaign with its ledger; exit 1 on any violation.
import { parseArgs } from 'node:util'
import { runCampaign } from './campaign.ts'
import { printLedger } from './ledger.ts'

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '50' },
    'postgres-kills': { type: 'string', default: '10' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
})

const endings: (() => void | Promise<void>)[] = []
console.log(`seed ${values.seed}`)
try {
  const ledger = await runCampaign(
    { after: (end) => void endings.push(end) },
    {
      kills: Number(values.kills),
      postgresKills: Number(values['postgres-kills']),
      seed: Number(values.seed),
      report: (line) => console.log(line),
    },
  )
  console.log(printLedger(ledger))
  process.exitCode = ledger.violations.length > 0 ? 1 : 0
} finally {
  for (const end of endings.reverse()) await end()
}
