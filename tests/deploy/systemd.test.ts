// Checks the systemd unit: systemd accepts it, and every setting in it exists.
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { before, test } from 'node:test'
import { parseEnv } from 'node:util'
import { readSettings } from '../../src/config/settings.ts'

const root = resolve(import.meta.dirname, '../..')
const unit = readFileSync(join(root, 'deploy/systemd/posthorn.service'), 'utf8')
const settings = parseEnv(readFileSync(join(root, 'deploy/systemd/posthorn.env'), 'utf8'))
const missing = spawnSync('systemd-analyze', ['--version']).status === 0 ? false : 'systemd is not installed'

before(() => assert.ok(!process.env['CI'] || !missing, `in CI nothing is skipped: ${missing}`))

/** Returns all values of a directive in the unit, in order. */
const valuesOf = (directive: string) =>
  [...unit.matchAll(new RegExp(`^${directive}=(.*)$`, 'gm'))].map(([, value]) => value!)

test('systemd finds nothing wrong with the unit', { skip: missing }, (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-unit-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'posthorn.service')
  // The program's folder on this machine.
  writeFileSync(file, unit.replaceAll('/opt/posthorn', root))
  const { status, stderr } = spawnSync('systemd-analyze', ['verify', file], { encoding: 'utf8' })
  assert.equal(status, 0, stderr)
  assert.ok(!stderr.includes('posthorn.service'), stderr)
})

test('the service has few privileges', { skip: missing }, () => {
  const words = ['security', '--offline=true', '--no-pager', '--threshold=25']
  const told = execFileSync('systemd-analyze', [...words, join(root, 'deploy/systemd/posthorn.service')], {
    encoding: 'utf8',
  })
  const exposure = Number(/exposure level for posthorn\.service: ([\d.]+)/.exec(told)?.[1])
  assert.ok(exposure < 2.5, told)
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
