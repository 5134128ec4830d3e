// Checks the systemd units: systemd accepts them, every setting in them exists, and both protect the machine alike.
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { before, test } from 'node:test'
import { parseEnv } from 'node:util'
import { readSettings } from '../../src/config/settings.ts'

const root = resolve(import.meta.dirname, '../..')
/** The unit of one node, and the one of a node by its name. */
const names = ['posthorn.service', 'posthorn@.service'] as const
const [unit, template] = names.map((name) => readFileSync(join(root, 'deploy/systemd', name), 'utf8'))
const settings = parseEnv(readFileSync(join(root, 'deploy/systemd/posthorn.env'), 'utf8'))
const missing = spawnSync('systemd-analyze', ['--version']).status === 0 ? false : 'systemd is not installed'

before(() => assert.ok(!process.env['CI'] || !missing, `in CI nothing is skipped: ${missing}`))

/** Returns all values of a directive in a unit, in order. */
const valuesOf = (directive: string, text = unit!) =>
  [...text.matchAll(new RegExp(`^${directive}=(.*)$`, 'gm'))].map(([, value]) => value!)

test('systemd finds nothing wrong with the units', { skip: missing }, (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-unit-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  // The program's folder on this machine.
  for (const [n, text] of [unit!, template!].entries())
    writeFileSync(join(folder, names[n]!), text.replaceAll('/opt/posthorn', root))
  for (const name of ['posthorn.service', 'posthorn@a.service']) {
    const { status, stderr } = spawnSync('systemd-analyze', ['verify', join(folder, name)], {
      encoding: 'utf8',
    })
    assert.equal(status, 0, stderr)
    assert.ok(!/posthorn(?:@a?)?\.service/.test(stderr), stderr)
  }
})

test('the service has few privileges', { skip: missing }, () => {
  for (const name of names) {
    const words = ['security', '--offline=true', '--no-pager', '--threshold=25']
    const report = execFileSync('systemd-analyze', [...words, join(root, 'deploy/systemd', name)], {
      encoding: 'utf8',
    })
    const exposure = Number(/exposure level for posthorn\S*\.service: ([\d.]+)/.exec(report)?.[1])
    assert.ok(exposure < 2.5, report)
  }
})

test('the template differs from the unit by the names of a node and the time to stop', () => {
  const directives = (text: string) => text.split('\n').filter((line) => /^[A-Z]\w+=/.test(line))
  const [ofUnit, ofTemplate] = [directives(unit!), directives(template!)]
  assert.deepEqual(
    ofTemplate.filter((line) => !ofUnit.includes(line)).map((line) => line.split('=', 1)[0]),
    ['Description', 'After', 'EnvironmentFile', 'Environment', 'TimeoutStopSec', 'StateDirectory'],
  )
  assert.equal(ofTemplate.length, ofUnit.length)
  assert.deepEqual(valuesOf('EnvironmentFile', template), ['/etc/posthorn/%i.env'])
  assert.match(valuesOf('Environment', template)[0]!, /^POSTHORN_DATA_DIR=\/var\/lib\/posthorn\/%i /)
  assert.equal(valuesOf('StateDirectory', template)[0]!.split(' ')[0], 'posthorn/%i')
  // The longest POSTHORN_DRAIN_DELAY, and the drain.
  assert.ok(Number(valuesOf('TimeoutStopSec', template)[0]) > 60 + 30)
})

test('the unit’s settings are valid, and commands find the service’s data folder', () => {
  const read = readSettings(settings)
  assert.ok(!read.isDevelopment && read.acme)
  assert.deepEqual(read.operator, { host: '127.0.0.1', port: 8026 })
  const environment = Object.fromEntries(
    valuesOf('Environment').flatMap((line) => line.split(' ').map((pair) => pair.split('='))),
  )
  assert.equal(environment.POSTHORN_DATA_DIR, read.dataDir)
  assert.equal(read.dataDir, `/var/lib/${valuesOf('StateDirectory')[0]}`)
  assert.equal(environment.NODE_COMPILE_CACHE, `/var/cache/${valuesOf('CacheDirectory')[0]}`)
  assert.deepEqual(valuesOf('EnvironmentFile'), [`${valuesOf('WorkingDirectory')[0]}/.env`])
})

test('systemd waits for a drain, and signals only the service', () => {
  assert.ok(Number(valuesOf('TimeoutStopSec')[0]) > 30)
  assert.deepEqual([valuesOf('KillMode'), valuesOf('User')], [['mixed'], ['posthorn']])
})
