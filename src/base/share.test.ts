// Tests of share.ts.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { divided } from './share.ts'

const parts: [whole: number, workers: number, least: number, part: number][] = [
  [1_000, 1, 1, 1_000],
  [1_000, 3, 1, 333],
  [16, 4, 8, 8],
  [16, 2, 8, 8],
  [2, 16, 1, 1],
  [32, 2, 64, 32],
]
for (const [whole, workers, least, part] of parts)
  test(`${workers} workers divide ${whole}, with at least ${least} each, into parts of ${part}`, () => {
    assert.equal(divided(whole, workers, least), part)
  })
