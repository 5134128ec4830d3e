// Limits on the DNS questions of one mail.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Clock } from '../base/clock.ts'
import { boundLookups } from './bound-lookups.ts'
import type { Lookup } from './lookup.ts'

/** Answers every question with its name, and counts the questions. Never answers names that begin with `silent`. */
function countingLookup(): { lookup: Lookup; asked: string[] } {
  const asked: string[] = []
  const lookup = async (type: string, name: string) => {
    asked.push(`${type} ${name}`)
    if (name.startsWith('silent')) await new Promise(() => {})
    return { status: 'ok', records: [name] }
  }
  return { lookup: lookup as Lookup, asked }
}

test('check 52: past the bound no new question is asked, and repeated questions count once', async () => {
  const { lookup, asked } = countingLookup()
  const clock = new Clock()
  const bounded = boundLookups(lookup, { maxQuestions: 60, untilMs: clock.monotonicMs() + 60_000, clock })
  const names = Array.from({ length: 1_000 }, (_, index) => `n${index}.example`)
  const answers = await Promise.all(
    names.flatMap((name) => [bounded('TXT', name), bounded('TXT', name.toUpperCase())]),
  )
  assert.equal(asked.length, 60)
  assert.equal(answers.filter(({ status }) => status === 'ok').length, 120)
  assert.deepEqual(answers.at(-1), {
    status: 'temporary',
    reason: 'this mail asks DNS for more than 60 records',
  })
})

test('each record type counts as a question of its own', async () => {
  const { lookup, asked } = countingLookup()
  const clock = new Clock()
  const bounded = boundLookups(lookup, { maxQuestions: 60, untilMs: clock.monotonicMs() + 60_000, clock })
  for (const type of ['A', 'AAAA', 'A'] as const) await bounded(type, 'a.example')
  assert.deepEqual(asked, ['A a.example', 'AAAA a.example'])
})

test('check 52: a silent name is temporary at the deadline, and later questions are not sent', async () => {
  const { lookup, asked } = countingLookup()
  const clock = new Clock()
  const bounded = boundLookups(lookup, { maxQuestions: 60, untilMs: clock.monotonicMs() + 50, clock })
  const startedMs = performance.now()
  const alive = setTimeout(() => {}, 10_000)
  const [known, silent] = await Promise.all([bounded('TXT', 'a.example'), bounded('TXT', 'silent.example')])
  assert.ok(performance.now() - startedMs < 5_000)
  assert.deepEqual([known.status, silent.status], ['ok', 'temporary'])
  clock.advance(50)
  assert.deepEqual(await bounded('TXT', 'b.example'), {
    status: 'temporary',
    reason: 'DNS did not answer in time',
  })
  assert.equal((await bounded('TXT', 'a.example')).status, 'ok')
  clearTimeout(alive)
  assert.deepEqual(asked, ['TXT a.example', 'TXT silent.example'])
})
