// Nodes that hang are found by unchanged reports, and never while the observer itself was held up.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { SilentNodes } from './silent-nodes.ts'

const silentIds = (nodes: SilentNodes, reports: Record<number, string | null>, nowMs: number) =>
  nodes
    .observe(
      Object.entries(reports).map(([id, reported]) => ({ id: Number(id), reported })),
      nowMs,
    )
    .map(({ id }) => id)

test('silent nodes: a node is silent once its report has not changed for 10.5 s, and no longer when it reports again', () => {
  const nodes = new SilentNodes()
  for (let nowMs = 0; nowMs < 10_000; nowMs += 2_000)
    assert.deepEqual(silentIds(nodes, { 1: 'first', 2: `report ${nowMs}`, 3: null }, nowMs), [])
  assert.equal(nodes.soonestMs(8_000), 2_500)
  assert.deepEqual(silentIds(nodes, { 1: 'first', 2: 'last', 3: null }, 10_500), [1])
  assert.equal(nodes.soonestMs(10_500), 10_500)
  assert.deepEqual(silentIds(nodes, { 1: 'second', 2: 'last', 3: null }, 12_000), [])
})

test('silent nodes: an observer that was held up counts anew, because the others may have been as well', () => {
  const nodes = new SilentNodes()
  assert.equal(nodes.soonestMs(0), Number.POSITIVE_INFINITY)
  assert.deepEqual(silentIds(nodes, { 1: 'first' }, 0), [])
  assert.deepEqual(silentIds(nodes, { 1: 'first' }, 60_000), [])
  assert.deepEqual(silentIds(nodes, { 1: 'first' }, 64_000), [])
})

test('silent nodes: a node that reports every three seconds is never silent, however irregularly it is observed', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 8_000 }), { minLength: 10, maxLength: 60 }), (gapsMs) => {
      const nodes = new SilentNodes()
      let nowMs = 0
      for (const gapMs of gapsMs) {
        nowMs += gapMs
        assert.deepEqual(silentIds(nodes, { 1: String(Math.floor(nowMs / 3_000)) }, nowMs), [])
      }
    }),
  )
})
