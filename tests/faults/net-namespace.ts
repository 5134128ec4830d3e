// Gives one node a machine of its own: a network namespace on a bridge, whose cable can be pulled.
import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Scope } from '../support/until.ts'

export interface Machine {
  /** This side's address on the bridge, and that of the machine. */
  here: string
  there: string
  /** Writes a wrapper that runs the program there, under the pid of its caller. */
  wrap(program: string): string
  /** From now on, packets of both directions are dropped silently. */
  unplug(): void
  plugIn(): void
}

const ip = (...words: string[]) => void execFileSync('ip', words, { stdio: ['ignore', 'ignore', 'pipe'] })

/** Makes the namespace, the bridge and the cable. They are removed with the scope. Throws without the necessary rights. */
export function startMachine(scope: Scope): Machine {
  // Names of interfaces have up to 15 bytes.
  const id = String(process.pid)
  const [namespace, bridge, cable, port] = [`posthorn-${id}`, `phb${id}`, `phc${id}`, `php${id}`]
  const network = `10.219.${process.pid % 256}`
  const [here, there] = [`${network}.1`, `${network}.2`]
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-machine-'))
  chmodSync(folder, 0o755)
  scope.after(() => {
    // Removes everything that was made. The cable ends with the namespace, or with the bridge's side of it.
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
    // The bridge's port goes down and its address stays, so this kernel keeps sending, as to a machine without power.
    unplug: () => ip('link', 'set', cable, 'down'),
    plugIn: () => ip('link', 'set', cable, 'up'),
  }
}
