// The note of what is under way: what a process that ended leaves to the next one, and that nothing hinders the work.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { UnderWay } from './under-way.ts'

const folder = mkdtempSync(join(tmpdir(), 'posthorn-under-way-'))
after(() => rmSync(folder, { recursive: true }))

test('what was begun and not ended is known to the next process, until it begins something itself', () => {
  const path = join(folder, 'work')
  const [first, second] = [new UnderWay(path), new UnderWay(path)]
  assert.deepEqual(first.lost(), [])
  first.begin(['one', 'two', 'three'])
  first.end()
  assert.deepEqual(second.lost(), [])
  first.begin(['four', 'five'])
  assert.deepEqual([first.lost(), second.lost()], [[], ['four', 'five']])
  second.end()
  assert.deepEqual([second.lost(), new UnderWay(path).lost()], [[], []])
})

test('where nothing can be written the work goes on', () => {
  const none = new UnderWay(join(folder, 'missing', 'work'))
  none.begin(['one'])
  none.end()
  assert.deepEqual(none.lost(), [])
})
