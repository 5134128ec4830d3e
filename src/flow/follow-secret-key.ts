// Has a running node follow its secret key while that is being changed: reads the file again, and says which keys it has.
import type { Log } from '../base/log.ts'
import { checkOf, type SecretBox } from '../base/secret-box.ts'
import type { Db } from '../postgres/db.ts'
import { type KeyState, readKeyState, writeNodeKeys } from '../store/secret-keys.ts'
import { readKeyFile } from './key-file.ts'
import { chooseKeys, followKeys } from './secret-key.ts'

interface Deps {
  db: Db
  log: Log
  secretBox: SecretBox
  /** Where the keys are. */
  file: string
}

export class KeyFollower {
  readonly #deps: Deps
  #followed = ''
  #said = ''
  #complaint: string | null = null

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /** Uses the keys that the file and the database have now, and tells the others under this node's number. */
  async follow(nodeId: number | null): Promise<void> {
    const { db, secretBox, file } = this.#deps
    const keys = await readKeyFile(file).catch((error: Error) => error)
    const state = await readKeyState(db)
    const ring = keys === null || keys instanceof Error ? null : chooseKeys(state, keys)
    if (ring?.status !== 'complete')
      return this.#complain(keys instanceof Error ? keys.message : ring?.status)
    this.#complaint = null
    const checks = ring.keys.map(checkOf)
    const known = describe(checks, state)
    if (known !== this.#followed) followKeys(secretBox, state, ring.keys)
    this.#followed = known
    const said = `${nodeId} ${checks.map((check) => check.toString('hex')).join()}`
    if (nodeId === null || said === this.#said) return
    await writeNodeKeys(db.writer, nodeId, checks)
    this.#said = said
  }

  /** Once: the node goes on with the keys that it has, and would not start again. */
  #complain(reason = 'missing'): void {
    if (this.#complaint === reason) return
    this.#complaint = reason
    const { log, file } = this.#deps
    const words =
      'the file of the secret key is not what it was at the start: put it back before this node stops'
    log.error({ file, reason }, words)
  }
}

function describe(checks: readonly Buffer[], { former }: KeyState): string {
  const verifiers = former.filter(({ sealedVerifiers }) => sealedVerifiers).map(({ check }) => check)
  return [...checks, ...verifiers].map((check) => check.toString('hex')).join()
}
