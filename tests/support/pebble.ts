// Pebble, an ACME server for tests (Debian's): on loopback or another address, with a test's DNS, its own authority, and its log.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { accessSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { get } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from './free-port.ts'
import { type Scope, until } from './until.ts'

const program = '/usr/bin/pebble'
const fixture = (name: string) => fileURLToPath(new URL(`../fixtures/${name}`, import.meta.url))

/** The certificate of Pebble's own listener, which is its own authority: as NODE_EXTRA_CA_CERTS takes it. */
export const pebbleListenerCa = fixture('tls-cert.pem')

/** The reason for skipping the tests with a real ACME server, or false. */
export const pebbleMissing = findPebble()

function findPebble(): string | false {
  try {
    accessSync(program)
    return false
  } catch {
    if (process.env['CI']) throw new Error(`${program} is missing`)
    console.error(
      `SKIPPED: no certificate is ordered of a real ACME server, for ${program} is missing: apt install pebble`,
    )
    return `no ${program}`
  }
}

export interface Pebble {
  /** The form that POSTHORN_ACME_DIRECTORY takes. */
  directory: string
  /** The root of the certificates that it issues, PEM. */
  root(): Promise<string>
  /** `Valid`, `Revoked`, …, by the serial number in hexadecimal. */
  statusOf(serial: string): Promise<string>
  /** How many lines of its log match. */
  count(line: RegExp): number
  /** The number in the group of the newest match in its log. */
  newest(line: RegExp): number
}

interface Options {
  /** The DNS server to use, `ip:port`, and the port for its challenge requests. */
  dns: string
  httpPort: number
  validitySeconds?: number
  /** The address that it listens on, and the files of a certificate for that address. */
  host?: string
  listener?: { certificate: string; privateKey: string }
}

const loopbackListener = { certificate: pebbleListenerCa, privateKey: fixture('tls-key.pem') }

/** Starts a server, which ends with the scope. */
export async function startPebble(
  scope: Scope,
  { dns, httpPort, validitySeconds = 7_776_000, host = '127.0.0.1', listener = loopbackListener }: Options,
): Promise<Pebble> {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-pebble-'))
  const [port, managementPort] = [await freePort(), await freePort()]
  const config = {
    listenAddress: `${host}:${port}`,
    managementListenAddress: `${host}:${managementPort}`,
    ...listener,
    httpPort,
    tlsPort: await freePort(),
    certificateValidityPeriod: validitySeconds,
  }
  writeFileSync(join(folder, 'config.json'), JSON.stringify({ pebble: config }))
  const env = { PEBBLE_VA_NOSLEEP: '1', PEBBLE_WFE_NONCEREJECT: '10' }
  const args = ['-config', join(folder, 'config.json'), '-dnsserver', dns]
  const child = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  const lines: string[] = []
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => void lines.push(...text.split('\n')))
  scope.after(async () => {
    await end(child)
    rmSync(folder, { recursive: true, force: true })
  })
  await until('pebble to listen', () => {
    if (child.exitCode !== null) throw new Error(`pebble ended:\n${lines.join('\n')}`)
    return lines.some((line) => line.includes('ACME directory available'))
  })
  const manage = (path: string) => fetchText(`https://${host}:${managementPort}${path}`, listener.certificate)
  return {
    directory: `https://${host}:${port}/dir`,
    root: () => manage('/roots/0'),
    statusOf: async (serial) => JSON.parse(await manage(`/cert-status-by-serial/${serial}`)).Status,
    count: (line) => lines.filter((text) => line.test(text)).length,
    newest: (line) => Number(lines.flatMap((text) => line.exec(text)?.[1] ?? []).at(-1) ?? Number.NaN),
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGKILL')
  await once(child, 'exit')
}

async function fetchText(url: string, authority: string): Promise<string> {
  const request = get(url, { ca: readFileSync(authority), agent: false })
  const [response] = await once(request, 'response')
  let text = ''
  for await (const chunk of response) text += chunk
  return text
}
