// clamd for tests: Debian's, with one signature of our own and no downloads; and a fake with scripted answers.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { accessSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Clamd, type ClamdAddress } from '../../src/scan/clamd.ts'
import { type Scope, until } from './until.ts'

const program = '/usr/sbin/clamd'

/** The text that the signature matches. This clamd takes everything else for clean. */
export const virus = 'POSTHORN-TEST-SIGNATURE-AND-NO-VIRUS'

/** The reason for skipping the tests with a real clamd, or false. */
export const clamdMissing = findClamd()

function findClamd(): string | false {
  try {
    accessSync(program)
    return false
  } catch {
    if (process.env['CI']) throw new Error(`${program} is missing`)
    console.error(
      `SKIPPED: nothing is scanned by a real clamd, for ${program} is missing: apt install clamav-daemon`,
    )
    return `no ${program}`
  }
}

export interface TestClamd {
  /** The form that POSTHORN_CLAMD takes. */
  path: string
  pid(): number
  start(): Promise<void>
  /** Sends SIGKILL. Resolves once the process has ended. */
  kill9(): Promise<void>
}

/** A clamd that is not started yet. Longer streams are cut off. With the scope it ends and its folder is removed. */
export function makeClamd(scope: Scope, { longest = '1M' }: { longest?: string } = {}): TestClamd {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-clamd-'))
  const path = join(folder, 'socket')
  const conf = join(folder, 'clamd.conf')
  const signatures = join(folder, 'signatures')
  mkdirSync(signatures)
  writeFileSync(join(signatures, 'test.ndb'), `Posthorn.Test:0:*:${Buffer.from(virus).toString('hex')}\n`)
  const lines = [
    `LocalSocket ${path}`,
    'FixStaleSocket yes',
    `DatabaseDirectory ${signatures}`,
    'Foreground yes',
  ]
  const limits = [`StreamMaxLength ${longest}`, 'AlertEncrypted yes', 'AlertExceedsMax yes', 'MaxThreads 4']
  writeFileSync(conf, [...lines, ...limits, ''].join('\n'))
  let child: ChildProcess | null = null
  const kill9 = async () => {
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
  scope.after(async () => {
    await kill9()
    rmSync(folder, { recursive: true, force: true })
  })
  const start = async () => {
    child = spawn(program, ['--config-file', conf], { stdio: 'ignore' })
    const clamd = new Clamd({ path })
    const answers = () => clamd.version().then(Boolean, () => false)
    await until('clamd to answer', answers)
  }
  return { path, pid: () => child!.pid!, start, kill9 }
}

/** The fake's behavior on a connection after its first bytes. It never sees `PING` and `VERSION`. */
export type Script = (socket: Socket, received: Buffer) => void

/** A server that answers `PONG`, unless it plays dead, and calls `script` for each piece of a stream. */
export async function fakeClamd(
  scope: Scope,
  script: Script,
  life: { isDead?: boolean } = {},
): Promise<ClamdAddress & { port: number; host: string }> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    let received: Buffer = Buffer.alloc(0)
    socket.on('error', () => {})
    socket.on('data', (piece) => {
      received = Buffer.concat([received, piece])
      if (received.toString('latin1') === 'zPING\0') {
        if (!life.isDead) socket.end('PONG\0')
      } else if (received.toString('latin1') === 'zVERSION\0') socket.end('Fake 1\0')
      else script(socket, received)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  scope.after(async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  })
  return { host: '127.0.0.1', port: (server.address() as AddressInfo).port }
}

/** The content of a complete stream, else null. */
export function streamed(received: Buffer): Buffer | null {
  const pieces: Buffer[] = []
  for (let at = 'zINSTREAM\0'.length; at + 4 <= received.length; ) {
    const length = received.readUInt32BE(at)
    if (length === 0) return Buffer.concat(pieces)
    pieces.push(received.subarray(at + 4, at + 4 + length))
    at += 4 + length
  }
  return null
}
