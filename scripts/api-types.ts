// Writes the code that is generated from the API's documents: the types of dashboard and SDKs, and the SDKs' operations.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { readDeskDocument, readDocument, root } from './documents.ts'
import { writePythonClient } from './sdk/python/write.ts'
import { writeOperations } from './sdk/typescript.ts'

/** The generator needs TypeScript's JavaScript API, so it is installed next to a TypeScript that has one. */
function generate(document: string, name: string): void {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-types-'))
  try {
    const from = join(folder, 'openapi.json')
    writeFileSync(from, document)
    const stranger = createRequire(join(root, 'tests/stranger/package.json'))
    const program = join(dirname(stranger.resolve('openapi-typescript/package.json')), 'bin/cli.js')
    const { status, stderr } = spawnSync(process.execPath, [program, from, '-o', join(root, name)], {
      encoding: 'utf8',
    })
    if (status !== 0) throw new Error(`openapi-typescript failed: ${stderr}`)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

generate(await readDocument('/app/openapi.json'), 'dashboard/src/api/app.gen.ts')
generate(await readDeskDocument(), 'dashboard/src/api/desk.gen.ts')
const document = await readDocument('/openapi.json')
generate(document, 'sdk/typescript/src/api.gen.ts')
writeFileSync(join(root, 'sdk/typescript/src/operations.gen.ts'), writeOperations(document))
writePythonClient(document)
