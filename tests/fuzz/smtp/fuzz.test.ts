// Plays one round of conversations with the real mail server; `npm run test:fuzz -- smtp` runs for as many minutes as asked.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { conversationsPerRound, newFigures, playRound } from './campaign.ts'
import { planOf } from './plan.ts'
import { Subject } from './subject.ts'

const seed = Number(process.env['POSTHORN_TEST_SEED'] ?? Date.now() % 1e9)

test('a plan is the same every time it is made', () => {
  for (let number = 0; number < 20; number++) assert.deepEqual(planOf(seed, number), planOf(seed, number))
})

test('check 1, 27: after any dialogue each accepted message is stored once, as it was sent', async (t) => {
  const endings: (() => void | Promise<void>)[] = []
  after(async () => {
    for (const end of endings.reverse()) await end()
  })
  const subject = await Subject.start({ after: (end) => void endings.push(end) })
  const figures = newFigures(seed)
  await playRound(subject, figures, 0)
  const { sessions, answered, accepted, copies, secured } = figures
  t.diagnostic(`seed ${seed}: POSTHORN_TEST_SEED sets it`)
  t.diagnostic(`${sessions} sessions, ${answered} commands answered, ${accepted} messages, ${copies} copies`)
  assert.deepEqual(figures.faults, [], `seed ${seed}`)
  assert.equal(sessions, conversationsPerRound)
  assert.ok(accepted > sessions / 5 && secured > sessions / 10, 'most of what there is was tried')
})
