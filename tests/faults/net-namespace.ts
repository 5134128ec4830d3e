// Machines of their own for programs: network namespaces on a bridge, each with a cable that can be pulled.
import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Scope } from '../support/until.ts'

export interface Machine {
  /** The address of the machine. */
  there: string
  /** The words before a command that run it there, under the pid of its caller. */
  enter: readonly string[]
  /** Writes a wrapper that runs the program there, under the pid of its caller. */
  wrap(program: string): string
  /** From now on, packets of both directions are dropped silently. */
  unplug(): void
  plugIn(): void
  /** From now on, packets from there to this address are dropped silently. Other packets pass. */
  misdirect(address: string): void
  direct(address: string): void
}

export interface Network {
  /** This side's address on the bridge. */
  here: string
  /** A second address of this side. */
  alsoHere: string
  machines: Machine[]
}

/** No interface has this address. */
const absent = '02:00:00:00:00:01'

const ip = (...words: string[]) => void execFileSync('ip', words, { stdio: ['ignore', 'ignore', 'pipe'] })

/** The reason why this machine cannot make a network; null if it can. */
export function missingForNetworks(): string | null {
  if (spawnSync('ip', ['-V']).status !== 0) return 'it needs the program ip: apt-get install iproute2'
  return process.getuid?.() === 0 ? null : 'it makes a network namespace, which needs root'
}

/** Makes a bridge with machines on it. They are removed with the scope. Throws without the necessary rights. */
export function startNetwork(scope: Scope, count: number): Network {
  // Names of interfaces have up to 15 bytes.
  const id = String(process.pid)
  const bridge = `phb${id}`
  const network = `10.219.${process.pid % 256}`
  const [here, alsoHere] = [`${network}.1`, `${network}.254`]
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-machine-'))
  chmodSync(folder, 0o755)
  scope.after(() => {
    spawnSync('ip', ['link', 'delete', bridge])
    rmSync(folder, { recursive: true, force: true })
  })
  ip('link', 'add', bridge, 'type', 'bridge')
  for (const address of [here, alsoHere]) ip('address', 'add', `${address}/24`, 'dev', bridge)
  ip('link', 'set', bridge, 'up')
  const machines = Array.from({ length: count }, (_, n) =>
    addMachine(scope, { id: `${id}-${n}`, bridge, there: `${network}.${n + 2}`, folder }),
  )
  return { here, alsoHere, machines }
}

interface Wiring {
  id: string
  bridge: string
  there: string
  folder: string
}

function addMachine(scope: Scope, { id, bridge, there, folder }: Wiring): Machine {
  const [namespace, cable, port] = [`posthorn-${id}`, `phc${id}`, `php${id}`]
  scope.after(() => {
    // Removes everything that was made. The cable ends with the namespace.
    spawnSync('ip', ['link', 'delete', cable])
    spawnSync('ip', ['netns', 'delete', namespace])
  })
  ip('netns', 'add', namespace)
  ip('link', 'add', cable, 'type', 'veth', 'peer', 'name', port, 'netns', namespace)
  ip('link', 'set', cable, 'master', bridge, 'up')
  ip('-n', namespace, 'link', 'set', 'lo', 'up')
  ip('-n', namespace, 'address', 'add', `${there}/24`, 'dev', port)
  ip('-n', namespace, 'link', 'set', port, 'up')
  const enter = ['ip', 'netns', 'exec', namespace]
  return {
    there,
    enter,
    wrap: (program) => {
      const file = join(folder, `run-${id}`)
      writeFileSync(file, `#!/bin/sh\nexec ${enter.join(' ')} '${program}' "$@"\n`, { mode: 0o755 })
      return file
    },
    // The bridge's port goes down and its address stays, so this kernel keeps sending, as to a machine without power.
    unplug: () => ip('link', 'set', cable, 'down'),
    plugIn: () => ip('link', 'set', cable, 'up'),
    misdirect: (address) =>
      ip('-n', namespace, 'neighbour', 'replace', address, 'lladdr', absent, 'dev', port, 'nud', 'permanent'),
    direct: (address) => ip('-n', namespace, 'neighbour', 'delete', address, 'dev', port),
  }
}
