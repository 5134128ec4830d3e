// Prints every problem that the rules spectral:oas find in the document at an address.
import { type RulesetDefinition, Spectral } from '@stoplight/spectral-core'
import { oas } from '@stoplight/spectral-rulesets'

const [address] = process.argv.slice(2)
if (!address) throw new Error('usage: PROGRAM URL')
const spectral = new Spectral()
spectral.setRuleset({ extends: [[oas as RulesetDefinition, 'recommended']] })
const problems = await spectral.run(await (await fetch(address)).text())
for (const { code, message, path } of problems) console.log(`${code}: ${message} (${path.join('.')})`)
console.log(`${problems.length} problems`)
