// A machine of its own for one node: a network namespace on a bridge, whose cable can be pulled.
import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Scope } from '../support/until.ts'

export interface Machine {
  /** This side's address on the bridge, and that of the machine. */
  here: string
  there: string
  /** Runs a program there, under the pid of who runs it. */
  wrap(program: string): string
  /** From now on packets of both directions are dropped without a word. */
  unplug(): void
  plugIn(): void
}

const ip = (...words: string[]) => void execFileSync('ip', words, { stdio: ['ignore', 'ignore', 'pipe'] })

/** Makes the namespace, the bridge and the cable; they are gone when the scope ends. Throws if that takes more rights. */
export function startMachine(scope: Scope): Machine {
  // Names of interfaces have 15 bytes at most.
  const id = String(process.pid)
  const [namespace, bridge, cable, port] = [`posthorn-${id}`, `phb${id}`, `phc${id}`, `php${id}`]
  const network = `10.219.${process.pid % 256}`
  const [here, there] = [`${network}.1`, `${network}.2`]
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-machine-'))
  chmodSync(folder, 0o755)
  scope.after(() => {
    // Whatever of it was made: the cable ends with the namespace, or with the bridge's side of it.
    spawnSync('ip', ['link', 'delete', cable])
    spawnSync('ip', ['link', 'delete', bridge])
    spawnSync('ip', ['netns', 'delete', namespace])
    rmSync(folder, { recursive: true, force: true })
  })
  ip('netns', 'add', namespace)
  ip('link', 'add', bridge, 'type', 'bridge')
  ip('address', 'add', `${here}/24`, 'dev', bridge)
  ip('link', 'set', bridge, 'up')
  ip('link', 'add', cable, 'type', 'veth', 'peer', 'name', port, 'netns', namespace)
  ip('link', 'set', cable, 'master', bridge, 'up')
  ip('-n', namespace, 'link', 'set', 'lo', 'up')
  ip('-n', namespace, 'address', 'add', `${there}/24`, 'dev', port)
  ip('-n', namespace, 'link', 'set', port, 'up')
  return {
    here,
    there,
    wrap: (program) => {
      const file = join(folder, 'run')
      writeFileSync(file, `#!/bin/sh\nexec ip netns exec ${namespace} '${program}' "$@"\n`, { mode: 0o755 })
      return file
    },
    // The port of the bridge goes, its address stays: the kernel here goes on sending, as to a machine without power.
    unplug: () => ip('link', 'set', cable, 'down'),
    plugIn: () => ip('link', 'set', cable, 'up'),
  }
}
