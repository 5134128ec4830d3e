// Wakes: they go together, never back to their sender, only if there is another node, and a strange text does nothing.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../tests/support/until.ts'
import { silentLog } from '../base/log.ts'
import { type HeardWake, Wakes } from './wakes.ts'

/** A node that hears its own texts too, as PostgreSQL sends them. */
function makeNode(t: { after(end: () => Promise<void>): void }) {
  const texts: string[] = []
  let hear: (text: string) => void = () => {}
  const membership = {
    nodeId: 7,
    hasOthers: true,
    notify: async (text: string) => {
      texts.push(text)
      hear(text)
    },
    onHeard: (heard: (text: string) => void) => void (hear = heard),
  }
  const wakes = new Wakes({ membership, roles: ['api'], log: silentLog })
  const heard: HeardWake[] = []
  wakes.onHeard((wake) => heard.push(wake))
  wakes.start()
  t.after(() => wakes.stop())
  return { wakes, membership, texts, heard, hear: (text: string) => hear(text) }
}

test('wakes: the first goes at once, and those of the next moment go together', async (t) => {
  const { wakes, texts, heard } = makeNode(t)
  wakes.send({ received: true })
  await until('the first', () => texts.length === 1)
  wakes.send({ announced: true, routes: ['a.test'] })
  wakes.send({ routes: ['b.test', 'a.test'], webhooks: ['whk_1'] })
  await until('the second', () => texts.length === 2)
  assert.deepEqual(
    texts.map((text) => JSON.parse(text)),
    [
      { node: 7, roles: ['api'], received: true, routes: [], webhooks: [] },
      { node: 7, roles: ['api'], announced: true, routes: ['a.test', 'b.test'], webhooks: ['whk_1'] },
    ],
  )
  assert.deepEqual(heard, [])
})

test('wakes: without another node nothing is sent', async (t) => {
  const { wakes, membership, texts } = makeNode(t)
  membership.hasOthers = false
  wakes.send({ routes: ['a.test'] })
  membership.hasOthers = true
  wakes.send({ routes: ['b.test'] })
  await until('the second', () => texts.length > 0)
  assert.deepEqual(
    texts.map((text) => JSON.parse(text).routes),
    [['b.test']],
  )
})

test('wakes: many long names go in several notifications that fit, and beyond 1,000 none wait', async (t) => {
  const { wakes, texts } = makeNode(t)
  const routes = Array.from({ length: 1_200 }, (_, n) => `${n}.`.padEnd(255, 'x'))
  wakes.send({ routes, webhooks: routes.slice(0, 30), received: true, announced: true })
  const routesSent = () => texts.flatMap((text) => JSON.parse(text).routes)
  await until('a thousand', () => routesSent().length === 1_000 && JSON.parse(texts.at(-1)!).webhooks.length)
  assert.deepEqual(routesSent(), routes.slice(0, 1_000))
  assert.ok(texts.every((text) => Buffer.byteLength(text) < 8_000))
})

test('wakes: the text of another node is heard, and a text of another form is ignored', (t) => {
  const { heard, hear } = makeNode(t)
  const wake = { roles: ['mx'], received: true, announced: false, routes: ['a.test'], webhooks: [] }
  hear(JSON.stringify({ node: 8, ...wake }))
  const strange = [
    '',
    'null',
    '7',
    '[]',
    '{',
    '{"node":8}',
    '{"node":8,"roles":"mx","routes":[],"webhooks":[]}',
  ]
  for (const text of strange) hear(text)
  hear('{"node":8,"roles":[],"routes":[1],"webhooks":[]}')
  assert.deepEqual(heard, [wake])
})
