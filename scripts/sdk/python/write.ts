// Writes the generated half of the Python client: types and operations, and the blocking client out of that for asyncio.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { makeBlocking } from './blocking.ts'
import { writeOperations } from './operations.ts'
import type { ApiDocument } from './schema.ts'
import { PythonTypes } from './types.ts'

const folder = resolve(import.meta.dirname, '../../../sdk/python/src/posthorn')

/** Writes `types.py`, `_async/operations.py` and all of `_sync`, for the API of this OpenAPI document. */
export function writePythonClient(text: string): void {
  const types = new PythonTypes(JSON.parse(text) as ApiDocument, 'types.')
  writeFileSync(join(folder, '_async/operations.py'), writeOperations(text, types))
  for (const union of ['WebhookEvent', 'StreamEvent'])
    types.typeOf({ $ref: `#/components/schemas/${union}` }, union)
  writeFileSync(join(folder, 'types.py'), types.write())
  writeBlocking()
}

function writeBlocking(): void {
  rmSync(join(folder, '_sync'), { recursive: true, force: true })
  mkdirSync(join(folder, '_sync'))
  for (const name of readdirSync(join(folder, '_async')).filter((one) => one.endsWith('.py'))) {
    const text = readFileSync(join(folder, '_async', name), 'utf8')
    writeFileSync(join(folder, '_sync', name), makeBlocking(text))
  }
}
