// Runs opendkim and opendmarc as the milters of another mail server, with the test's DNS.
import { spawn, spawnSync } from 'node:child_process'
import { accessSync, chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../support/free-port.ts'
import { type Scope, until } from '../support/until.ts'
import { isListening } from './neighbour.ts'

export interface Milters {
  /** The milters in the form that Postfix's `smtpd_milters` takes. */
  chain: string
  /** Returns opendmarc's history of the messages so far: its names and values, per message. */
  verdicts(): Record<string, string>[]
}

const programs = ['/usr/sbin/opendkim', '/usr/sbin/opendmarc', '/usr/bin/unshare']

/** Returns why the milters cannot run here, or null. */
export function miltersMissing(): string | null {
  try {
    for (const path of programs) accessSync(path)
  } catch {
    // Not installed.
    return `one of ${programs.join(', ')} is not installed (apt-get install opendkim opendmarc util-linux)`
  }
  const mayMount = spawnSync('/usr/bin/unshare', ['-m', 'true']).status === 0
  return mayMount
    ? null
    : 'a mount namespace, in which the milters are shown the DNS of the test, is not allowed here'
}

/**
 * Starts both milters for the host `postfix.test`. They can query only port 53, so `dns` must be an address with a server
 * on this port. opendmarc knows only the organizations below `suffixes`.
 */
export async function startMilters(
  scope: Scope,
  dns: string,
  { suffixes = [] }: { suffixes?: string[] } = {},
): Promise<Milters> {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-milters-'))
  chmodSync(folder, 0o755)
  scope.after(() => rmSync(folder, { recursive: true, force: true }))
  const [dkimPort, dmarcPort] = [await freePort(), await freePort()]
  const write = (name: string, text: string) => writeFileSync(join(folder, name), text)
  write('resolv.conf', `nameserver ${dns}\noptions timeout:2 attempts:1\n`)
  write(
    'opendkim.conf',
    // Without InternalHosts, opendkim would sign mail from the test's own address instead of verifying it.
    `Mode v\nAlwaysAddARHeader yes\nAuthservID postfix.test\nInternalHosts csl:192.0.2.1\nNameservers ${dns}\n`,
  )
  write(
    'opendmarc.conf',
    `AuthservID postfix.test\nTrustedAuthservIDs postfix.test\nIgnoreHosts ${folder}/nobody\nHistoryFile ${folder}/history
SPFSelfValidate true\nSPFIgnoreResults true\nFailureReports false\nRejectFailures false\nPidFile ${folder}/pid\nPublicSuffixList ${folder}/suffixes\n`,
  )
  write('nobody', '192.0.2.1\n')
  write('suffixes', suffixes.map((suffix) => `${suffix}\n`).join(''))
  await run(scope, folder, 'opendkim', ['-f', '-x', `${folder}/opendkim.conf`], dkimPort)
  await run(scope, folder, 'opendmarc', ['-f', '-c', `${folder}/opendmarc.conf`], dmarcPort)
  return {
    chain: `inet:127.0.0.1:${dkimPort}, inet:127.0.0.1:${dmarcPort}`,
    verdicts: () => readHistory(join(folder, 'history')),
  }
}

async function run(scope: Scope, folder: string, name: string, words: string[], port: number): Promise<void> {
  const line = [`mount --bind ${folder}/resolv.conf /etc/resolv.conf && exec /usr/sbin/${name} "$@"`, name]
  const child = spawn(
    '/usr/bin/unshare',
    ['-m', '/bin/sh', '-c', ...line, ...words, '-p', `inet:${port}@127.0.0.1`],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  )
  scope.after(
    () =>
      new Promise<void>((resolve) => {
        if (child.exitCode !== null || child.signalCode !== null) return resolve()
        child.once('exit', () => resolve())
        child.kill('SIGKILL')
      }),
  )
  await until(`${name} to listen`, () => {
    if (child.exitCode !== null) throw new Error(`${name} ended with ${child.exitCode}`)
    return isListening(port)
  })
}

/** Parses the history. Each message's entries begin with `job`. */
function readHistory(path: string): Record<string, string>[] {
  let text = ''
  try {
    text = readFileSync(path, 'utf8')
  } catch {
    // opendmarc has noted nothing yet.
    return []
  }
  const verdicts: Record<string, string>[] = []
  for (const line of text.split('\n')) {
    const [name = '', ...rest] = line.split(' ')
    if (name === 'job') verdicts.push({})
    if (name !== '') verdicts.at(-1)![name] = rest.join(' ')
  }
  return verdicts
}
