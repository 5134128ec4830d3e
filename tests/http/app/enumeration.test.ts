// Response times do not reveal whether an address has an account; `tests/hostile/enumeration.ts` checks longer.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setStage } from '../stage.ts'
import { questions, timeQuestion } from './enumeration.ts'

const stage = await setStage({ after }, { trustedProxies: ['127.0.0.0/8'] })
const pairs = 30

for (const [name, question] of Object.entries(questions))
  test(`check 69a: ${name} takes as long for a known address as for an unknown one`, async (t) => {
    const { longerPercent, medianMs } = await timeQuestion(stage, name, question, pairs)
    const [known, unknown] = medianMs.map((ms) => ms.toFixed(1))
    t.diagnostic(
      `${pairs} pairs: known ${known} ms, unknown ${unknown} ms, longer in ${longerPercent.toFixed(0)} %`,
    )
    // 30 fair coin tosses give fewer than 5 or more than 25 heads once in 10,000 runs.
    assert.ok(
      longerPercent > 16 && longerPercent < 84,
      `known took longer in ${longerPercent} % of the pairs`,
    )
  })
