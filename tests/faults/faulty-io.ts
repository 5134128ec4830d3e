// Faults of a disk for programs: a preloaded library makes calls on chosen files fail, while a test wants it to.
import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, closeSync, mkdirSync, mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs'
import { constants, tmpdir } from 'node:os'
import { join } from 'node:path'
import { chooseOwner } from '../../src/postgres/embedded/owner.ts'
import { locateSoftware } from '../../src/postgres/embedded/software.ts'
import { ownProgram } from '../support/command.ts'
import type { Scope } from '../support/until.ts'

/** The bits of the operations in `faulty-io.c`. */
const bits = { write: 1, sync: 2, read: 4, open: 8 } as const
const kinds = { fails: 0, short: 1, torn: 2 } as const
const ruleBytes = 256
const ruleCount = 4
/** The positions of the fields of a rule. */
const hitsAt = 20
const partAt = 24

export interface IoFault {
  operation: keyof typeof bits
  /** `fails`: nothing is done. `short`: half is done, and the call says so. `torn`: half is done, and the call fails. */
  kind?: keyof typeof kinds
  /** Every call with this number fails. */
  every?: number
  /** Paths of the affected files contain this. */
  part: string
}

/** The reason why this machine cannot inject such faults; null if it can. */
export function missingForFaultyIo(): string | null {
  if (process.platform !== 'linux') return 'it preloads a library, which needs Linux'
  return spawnSync('gcc', ['--version']).status === 0
    ? null
    : 'it needs a C compiler: apt-get install gcc libc6-dev'
}

/** The same for the embedded PostgreSQL. */
export function missingForFaultyPostgres(): string | null {
  if (process.getuid?.() !== 0) return 'it mounts its own PostgreSQL program, which needs root'
  if (spawnSync('unshare', ['--mount', 'true']).status !== 0)
    return 'it needs a mount namespace, which is refused'
  return missingForFaultyIo()
}

/** The library, and the file that switches its faults. */
export class FaultyIo {
  /** The environment of a program whose calls may fail. */
  readonly env: Record<string, string>
  readonly #folder: string
  readonly #rules: number

  constructor(scope: Scope) {
    this.#folder = mkdtempSync(join(tmpdir(), 'posthorn-faulty-io-'))
    scope.after(() => rmSync(this.#folder, { recursive: true, force: true }))
    // PostgreSQL runs as another user.
    chmodSync(this.#folder, 0o755)
    const [library, rules] = [join(this.#folder, 'faulty-io.so'), join(this.#folder, 'rules')]
    const source = join(import.meta.dirname, 'faulty-io.c')
    execFileSync('gcc', ['-shared', '-fPIC', '-O1', '-Wall', '-Werror', '-o', library, source])
    this.#rules = openSync(rules, 'w+')
    scope.after(() => closeSync(this.#rules))
    writeSync(this.#rules, Buffer.alloc(ruleCount * ruleBytes))
    chmodSync(rules, 0o666)
    this.env = { LD_PRELOAD: library, FAULTY_IO: rules }
  }

  /** From now on, these calls fail. Ends the former fault. */
  begin({ operation, kind = 'fails', every = 1, part }: IoFault): void {
    this.end()
    const rule = Buffer.alloc(ruleBytes)
    rule.writeUInt32LE(every, 4)
    rule.writeUInt32LE(kinds[kind], 8)
    rule.writeUInt32LE(constants.errno.EIO, 12)
    if (rule.write(part, partAt) >= ruleBytes - partAt) throw new Error(`too long: ${part}`)
    writeSync(this.#rules, rule, 0, ruleBytes, 0)
    this.#switch(bits[operation])
  }

  /** The number of calls that have failed since `begin`. */
  get hits(): number {
    const count = Buffer.alloc(4)
    readSync(this.#rules, count, 0, 4, hitsAt)
    return count.readUInt32LE()
  }

  end(): void {
    this.#switch(0)
  }

  /** The first field of a rule switches it, so that no process sees half of a rule. */
  #switch(operations: number): void {
    const field = Buffer.alloc(4)
    field.writeUInt32LE(operations)
    writeSync(this.#rules, field, 0, 4, 0)
  }

  /**
   * Writes a wrapper of `bin/posthorn` whose embedded PostgreSQL has the library. In a mount namespace of its own, a script
   * covers PostgreSQL's program.
   */
  async wrapPostgres(): Promise<string> {
    const software = join(this.#folder, 'software')
    mkdirSync(software)
    const native = await locateSoftware(this.#folder, await chooseOwner(this.#folder))
    const preload = Object.entries(this.env).map(([name, value]) => `${name}='${value}'`)
    const postgres = this.#writeScript('postgres', [
      `export ${preload.join(' ')}`,
      `exec '${software}/bin/postgres' "$@"`,
    ])
    const inside = this.#writeScript('inside', [
      `mount --bind '${native}' '${software}' && mount --bind '${postgres}' '${native}/bin/postgres' || exit 1`,
      `exec '${ownProgram}' "$@"`,
    ])
    return this.#writeScript('posthorn', [`exec unshare --mount --propagation private '${inside}' "$@"`])
  }

  #writeScript(name: string, lines: string[]): string {
    const file = join(this.#folder, name)
    const descriptor = openSync(file, 'w', 0o755)
    writeSync(descriptor, ['#!/bin/sh', ...lines, ''].join('\n'))
    closeSync(descriptor)
    return file
  }
}
