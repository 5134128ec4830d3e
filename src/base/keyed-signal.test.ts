// Which listeners a key wakes.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { KeyedSignal } from './keyed-signal.ts'

test('a wake-up reaches all listeners of its key, once each, and no others', () => {
  const signal = new KeyedSignal()
  const woken: string[] = []
  const ends = ['a1', 'a2', 'b1'].map((name) => signal.listen(name[0]!, () => woken.push(name)))
  signal.wake(['a', 'a', 'c'])
  assert.deepEqual(woken, ['a1', 'a2'])
  ends[0]!()
  signal.wake(['b', 'a'])
  assert.deepEqual(woken.slice(2), ['b1', 'a2'])
  for (const end of ends) end()
  signal.wake(['a', 'b'])
  assert.equal(woken.length, 4)
})

test('a listener that stops or restarts during a wake-up does not disturb the others', () => {
  const signal = new KeyedSignal()
  const woken: string[] = []
  const end = signal.listen('a', () => {
    woken.push('first')
    end()
    signal.listen('b', () => woken.push('late'))
  })
  signal.listen('a', () => woken.push('second'))
  signal.wake(['a'])
  assert.deepEqual(woken, ['first', 'second'])
  signal.wake(['a', 'b'])
  assert.deepEqual(woken, ['first', 'second', 'second', 'late'])
})
