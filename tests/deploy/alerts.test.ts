// Checks the Prometheus alerts: their series exist, each refers to a line of docs/observing.md, and they fire when due.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { before, test } from 'node:test'
import { parse } from 'yaml'
import { makePlace, startNode } from '../support/node.ts'

const folder = resolve(import.meta.dirname, '../../deploy/prometheus')
const missing = spawnSync('promtool', ['--version']).status === 0 ? false : 'promtool is not installed'

interface Rules {
  groups: { rules: { alert: string; expr: string; labels: object; annotations: Record<string, string> }[] }[]
}

const { groups } = parse(readFileSync(join(folder, 'alerts.yml'), 'utf8')) as Rules
const rules = groups.flatMap((group) => group.rules)
const seriesIn = (text: string) => new Set(text.match(/\b(?:posthorn|nodejs|process)_[a-z0-9_]+/g))

before(() => assert.ok(!process.env['CI'] || !missing, `in CI nothing is skipped: ${missing}`))

test('every series that an alert queries exists', async (t) => {
  const node = await startNode(await makePlace(t), { env: { POSTHORN_DELIVERY: 'capture' } })
  const { host, port } = node.app.listening.operator
  const text = await (await fetch(`http://${host}:${port}/metrics`)).text()
  const known = new Set(text.match(/^# TYPE (\S+)/gm)?.map((line) => line.split(' ')[2]))
  const named = [...seriesIn(rules.map(({ expr }) => expr).join('\n'))]
  assert.ok(named.length >= 15)
  const unknown = named.filter(
    (name) => !known.has(name) && !known.has(name.replace(/_(?:bucket|sum|count)$/, '')),
  )
  assert.deepEqual(unknown, [])
})

test('each row of docs/observing.md has an alert', () => {
  const page = readFileSync(join(folder, '../../docs/observing.md'), 'utf8')
  const lines = page.split('\n').filter((line) => /^\|.*`(?:posthorn|nodejs)_.*\|$/.test(line))
  assert.ok(lines.length >= 14)
  const asked = seriesIn(
    rules
      .map(({ expr }) => expr)
      .join('\n')
      .replaceAll(/_(?:bucket|sum|count)\b/g, ''),
  )
  const silent = lines.filter((line) => ![...seriesIn(line)].some((name) => asked.has(name)))
  assert.deepEqual(silent, [])
})

test('each alert has a summary and a description of what to do', () => {
  assert.equal(new Set(rules.map(({ alert }) => alert)).size, rules.length)
  for (const { alert, annotations } of rules)
    assert.ok(annotations['summary'] && annotations['description'], alert)
})

test('promtool accepts the rules, and they fire as expected', { skip: missing }, () => {
  for (const words of [
    ['check', 'rules', 'alerts.yml'],
    ['test', 'rules', 'alerts.test.yml'],
  ]) {
    const { status, stdout, stderr } = spawnSync('promtool', words, { cwd: folder, encoding: 'utf8' })
    assert.equal(status, 0, stdout + stderr)
  }
})
