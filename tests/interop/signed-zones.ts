// Runs Knot DNS with a zone that it signs, an unsigned and a forged zone below it, and unbound, which validates all three.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Resolver } from '../../src/dns/resolver.ts'
import { freePort } from '../support/free-port.ts'
import { inherited } from '../support/service.ts'
import { type Scope, until } from '../support/until.ts'
import { end } from './name-servers.ts'

export const zones = {
  signed: 'signed.example',
  open: 'open.signed.example',
  forged: 'forged.signed.example',
}

/** Starts both with the lines of each zone. Returns the address of unbound. */
export async function startSignedZones(
  scope: Scope,
  lines: Record<keyof typeof zones, string>,
): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-signed-'))
  chmodSync(folder, 0o755)
  mkdirSync(join(folder, 'run'))
  const ports = { knot: await freePort(), unbound: await freePort() }
  const running: ChildProcess[] = []
  scope.after(async () => {
    for (const child of running) await end(child)
    rmSync(folder, { recursive: true, force: true })
  })
  const start = (program: string, args: string[]) =>
    running.push(spawn(program, args, { env: inherited(), stdio: 'ignore' }))
  // The parent has the digest of a key that the forged zone does not have.
  const forged = `${zones.forged}. 60 IN DS 12345 13 2 ${'AB'.repeat(32)}\n`
  const delegations = [zones.open, zones.forged]
    .map((zone) => `${zone}. 60 IN NS ns.${zones.signed}.\n`)
    .join('')
  const texts = { ...lines, signed: lines.signed + delegations + forged }
  for (const [name, zone] of Object.entries(zones))
    writeFileSync(join(folder, `${zone}.zone`), own(zone) + texts[name as keyof typeof zones])
  const knotConf = join(folder, 'knot.conf')
  writeFileSync(knotConf, knotConfiguration(folder, ports.knot))
  start('/usr/sbin/knotd', ['-c', knotConf])
  const authority = new Resolver({ servers: [`127.0.0.1:${ports.knot}`], timeoutMs: 500, tries: 1 })
  await until(
    'knot to serve the zones',
    async () => (await authority.resolve('A', `ns.${zones.forged}`)).status === 'ok',
  )
  const ds = execFileSync('/usr/sbin/keymgr', ['-c', knotConf, zones.signed, 'ds'], { encoding: 'utf8' })
  writeFileSync(join(folder, 'anchor'), ds.replaceAll(' DS ', ' IN DS '))
  writeFileSync(join(folder, 'unbound.conf'), unboundConfiguration(folder, ports))
  start('/usr/sbin/unbound', ['-d', '-c', join(folder, 'unbound.conf')])
  const address = `127.0.0.1:${ports.unbound}`
  const resolver = new Resolver({ servers: [address], timeoutMs: 500, tries: 1 })
  await until('unbound to validate', async () => {
    const answer = await resolver.resolve('A', `ns.${zones.signed}`)
    return answer.status === 'ok' && answer.isAuthenticated
  })
  return address
}

function own(zone: string): string {
  return `$ORIGIN ${zone}.\n$TTL 60\n@ SOA ns hostmaster 1 60 60 600 60\n@ NS ns\nns A 127.0.0.1\n`
}

function knotConfiguration(folder: string, port: number): string {
  const zone = (name: string, more: string) =>
    `  - domain: ${name}\n    storage: ${folder}\n    file: ${name}.zone\n    zonefile-sync: -1\n    journal-content: none\n${more}`
  const signing = '    dnssec-signing: on\n'
  return `server:
  listen: 127.0.0.1@${port}
  rundir: ${folder}/run
  udp-workers: 1
  tcp-workers: 1
  background-workers: 1
database:
  storage: ${folder}
log:
  - target: ${folder}/knot.log
    any: info
zone:
${zone(zones.signed, signing)}${zone(zones.open, '')}${zone(zones.forged, signing)}`
}

function unboundConfiguration(
  folder: string,
  { knot, unbound: port }: { knot: number; unbound: number },
): string {
  const stubs = Object.values(zones).map(
    (zone) => `stub-zone:\n  name: "${zone}"\n  stub-addr: 127.0.0.1@${knot}\n`,
  )
  return `server:
  interface: 127.0.0.1
  port: ${port}
  do-ip6: no
  do-daemonize: no
  username: ""
  chroot: ""
  directory: "${folder}"
  pidfile: "${folder}/unbound.pid"
  use-syslog: no
  logfile: "${folder}/unbound.log"
  num-threads: 1
  module-config: "validator iterator"
  trust-anchor-file: "${folder}/anchor"
  do-not-query-localhost: no
  access-control: 127.0.0.0/8 allow
remote-control:
  control-enable: no
${stubs.join('')}`
}
