// Checks the files of deploy/two-machines: programs accept them, they fit each other, and they fit their page.
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { parseEnv } from 'node:util'
import { parse } from 'yaml'
import { readSettings } from '../../src/config/settings.ts'
import { checkComposition, readComposition } from './composition.ts'
import { root } from './dockerfile.ts'

const folder = join(root, 'deploy/two-machines')
const read = (name: string) => readFileSync(join(folder, name), 'utf8')
const environment = (name: string) => parseEnv(read(name)) as Record<string, string>
const page = readFileSync(join(root, 'docs/two-machines.md'), 'utf8')
const balancer = read('haproxy.cfg')
const missing = spawnSync('haproxy', ['-v']).status === 0 ? false : 'haproxy is not installed'
const addresses = { a: '10.0.0.11', b: '10.0.0.12', c: '10.0.0.13' }

/** The settings of a node, as its service reads them. */
function settingsOf(name: 'a' | 'b') {
  const own = Object.entries(environment(`${name}.env`)).filter(([each]) => each.startsWith('POSTHORN_'))
  const names = Object.entries(environment('posthorn.env')).filter(([each]) => each.startsWith('POSTHORN_'))
  return readSettings(Object.fromEntries([...names, ...own]))
}

test('HAProxy accepts its file', { skip: missing }, (t) => {
  assert.ok(!process.env['CI'] || !missing, `in CI nothing is skipped: ${missing}`)
  const temporary = mkdtempSync(join(tmpdir(), 'posthorn-haproxy-'))
  t.after(() => rmSync(temporary, { recursive: true, force: true }))
  const [key, pem, file] = ['key', 'pem', 'haproxy.cfg'].map((name) => join(temporary, name))
  const words = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  execFileSync('openssl', [...words, '-subj', '/CN=mx.example.com', '-keyout', key!, '-out', pem!], {
    stdio: 'ignore',
  })
  writeFileSync(pem!, readFileSync(pem!, 'utf8') + readFileSync(key!, 'utf8'))
  writeFileSync(file!, balancer.replace('/etc/haproxy/posthorn.pem', pem!))
  const { status, stderr } = spawnSync('haproxy', ['-c', '-f', file!], { encoding: 'utf8' })
  assert.equal(status, 0, stderr)
  assert.doesNotMatch(stderr, /WARNING/)
})

test('no frontend takes the connections of another, and no address those of a frontend of HTTP', () => {
  const [whole, ...parts] = [...balancer.matchAll(/^ {2}maxconn (\d+)$/gm)].map(([, count]) => Number(count))
  assert.ok(parts.length === 3 && parts.reduce((sum, count) => sum + count) < whole!)
  const [, ...frontends] = balancer.split(/^frontend /m)
  for (const part of frontends.filter((each) => each.includes('mode http\n  maxconn'))) {
    assert.match(part, /^ {2}tcp-request connection track-sc0 src table clients$/m)
    assert.match(part, /^ {2}tcp-request connection reject if \{ sc0_conn_cur gt 1000 \}$/m)
  }
  assert.equal(frontends.length, parts.length)
})

test('the settings of both nodes are valid, and the balancers know their listeners', () => {
  for (const name of ['a', 'b'] as const) {
    const { http, smtp, operator, ...settings } = settingsOf(name)
    assert.ok(settings.acme && !settings.isDevelopment && !settings.https)
    assert.ok(!settings.mayMakeSecretKey, 'both nodes need the same key')
    const at = (port: number) => `server ${name} ${addresses[name]}:${port} `
    const check = `check port ${operator.port}\n`
    assert.ok(balancer.includes(`${at(http.port)}${check}`))
    assert.ok(balancer.includes(`${at(smtp.port)}send-proxy-v2 ${check}`))
    assert.deepEqual([http.host, smtp.host, operator.host], Array(3).fill(addresses[name]))
    assert.equal(settings.dataDir, `/var/lib/posthorn/${name}`)
  }
  const both = `${addresses.a}/32,${addresses.b}/32`
  const { POSTHORN_TRUSTED_PROXIES, POSTHORN_SMTP_TRUSTED } = environment('posthorn.env')
  assert.deepEqual([POSTHORN_TRUSTED_PROXIES, POSTHORN_SMTP_TRUSTED], [both, both])
})

test('a node drains longer than the balancers take to see it, and containers wait for the drain', () => {
  const [, interS, fall] = /default-server inter (\d+)s fall (\d+)/.exec(balancer)!
  const { drainDelayMs } = settingsOf('a')
  assert.ok(drainDelayMs > Number(interS) * Number(fall) * 1000)
  const { posthorn } = readComposition(join(folder, 'compose.yaml')).services
  assert.ok(Number.parseInt(posthorn!.stop_grace_period!, 10) * 1000 > 30_000 + drainDelayMs)
})

test('the machines differ only by name and addresses, and the nodes know every server', () => {
  const common = (name: 'a' | 'b' | 'c') =>
    read(`${name}.env`)
      .replaceAll(addresses[name], 'ADDRESS')
      .replace(/192\.0\.2\.1\d/, 'PUBLIC')
      .replace(new RegExp(`machine ${name}\\b|(?<=_NAME=|posthorn/)${name}$`, 'gm'), 'NAME')
      .replace(/^ETCD_INITIAL_CLUSTER=.*\n/m, '')
  assert.equal(common('a'), common('b'))
  assert.equal(common('a').split('\n\n').slice(0, 2).join('\n\n').trim(), common('c').trim())
  const peers = Object.entries(addresses).map(([name, address]) => `${name}=http://${address}:2380`)
  const hosts = Object.values(addresses)
  for (const name of ['a', 'b', 'c'])
    assert.equal(environment(`${name}.env`)['ETCD_INITIAL_CLUSTER'], peers.join())
  const patroni = parse(read('patroni.yml'))
  assert.equal(patroni.etcd.hosts, hosts.map((host) => `${host}:2379`).join())
  assert.deepEqual(patroni.restapi.allowlist, hosts)
  for (const rights of ['all all', 'replication replicator'])
    assert.deepEqual(
      patroni.postgresql.pg_hba.filter((line: string) => line.startsWith(`host ${rights} `)),
      hosts.map((host) => `host ${rights} ${host}/32 scram-sha-256`),
    )
  const url = environment('posthorn.env')['POSTHORN_DATABASE_URL']!
  assert.ok(url.includes(`@${hosts.map((host) => `${host}:5432`)}/posthorn?target_session_attrs=read-write`))
})

test('Patroni has the times that it requires, and enough connections for two nodes of eight workers', () => {
  const { ttl, loop_wait, retry_timeout, synchronous_mode, postgresql } = parse(read('patroni.yml')).bootstrap
    .dcs
  assert.ok(loop_wait + 2 * retry_timeout <= ttl && synchronous_mode)
  const rows = [...page.matchAll(/^\| (\d+) \| (\d+): .*\| (\d+) \| (\d+) \|$/gm)].map((row) =>
    row.slice(1).map(Number),
  )
  assert.deepEqual(
    rows.map(([workers]) => workers),
    [1, 2, 4, 8, 16],
  )
  for (const [workers, each, two, three] of rows) {
    const pools = Math.max(16, 8 * workers!)
    assert.equal(each, workers === 1 ? pools + 1 : pools + workers! + 3)
    assert.deepEqual([two, three], [2 * each! + 19, 3 * each! + 19])
  }
  assert.ok(postgresql.parameters.max_connections >= rows[3]![2]!)
})

test('the compose file of each machine refers to files that exist or that the page makes', () => {
  const file = join(folder, 'compose.yaml')
  checkComposition(file, ['./secrets/posthorn.pem', './clamd.conf'])
  const { services, secrets } = readComposition(file)
  for (const [service, { env_file }] of Object.entries(services)) {
    assert.equal(env_file === undefined, service === 'clamd', `${service} has the settings of its machine`)
    for (const path of env_file ?? [])
      for (const name of ['a', 'b', 'c'])
        assert.ok(existsSync(join(folder, path.replace(/\$\{MACHINE[^}]*\}/, name))))
  }
  assert.deepEqual(
    Object.entries(services).flatMap(([name, { profiles }]) => (profiles ? [] : [name])),
    ['etcd', 'patroni'],
    'machine c runs these alone',
  )
  for (const path of Object.values(secrets).map((secret) => secret.file.slice(2)))
    assert.ok(existsSync(join(folder, path)) || page.includes(`> ${path}\n`), path)
})

test('each placeholder and file of the page exists', () => {
  const files = ['a.env', 'b.env', 'c.env', 'posthorn.env', 'patroni.yml', 'haproxy.cfg']
  const all = files.map(read).join('')
  for (const word of page.match(/[A-Z]+-PASSWORD/g)!) assert.ok(all.includes(word), word)
  for (const name of page.match(/`[\w.-]+\.(?:env|yml|cfg|yaml)`/g)!.map((word) => word.slice(1, -1)))
    assert.ok(existsSync(join(folder, name)), name)
  assert.equal(all.match(/PASSWORD/g)!.length, 3, 'each password is in one file')
})
