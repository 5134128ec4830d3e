// Tests of channel.ts.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Channel, type Frame } from './channel.ts'

interface Calls {
  add(one: number, other: number): number
  note(text: string): void
  fail(): Promise<number>
  hang(): Promise<number>
}

function connect() {
  const notes: string[] = []
  const sent: Frame[][] = []
  const answers: Calls = {
    add: (one, other) => one + other,
    note: (text) => void notes.push(text),
    fail: async () => {
      throw new Error('no number')
    },
    hang: () => new Promise(() => {}),
  }
  const asker = new Channel<Calls, object>((frames) => {
    sent.push(frames)
    answerer.receive(structuredClone(frames))
  }, {})
  const answerer = new Channel<object, Calls>((frames) => asker.receive(structuredClone(frames)), answers)
  return { asker, notes, sent }
}

test('questions asked together go in one message, and are answered in order', async () => {
  const { asker, notes, sent } = connect()
  asker.post('note', 'first')
  const sums = [asker.ask('add', 1, 2), asker.ask('add', 3, 4)]
  asker.post('note', 'last')
  assert.deepEqual(await Promise.all(sums), [3, 7])
  assert.deepEqual([notes, sent.length], [['first', 'last'], 1])
})

test('a failed question rejects with its reason', async () => {
  await assert.rejects(connect().asker.ask('fail'), /^Error: no number$/)
})

test('questions of a closed channel reject, before and after it', async () => {
  const { asker } = connect()
  const open = asker.ask('hang')
  asker.close()
  await assert.rejects(open, /the other process has ended/)
  await assert.rejects(asker.ask('add', 1, 2), /the other process has ended/)
})
