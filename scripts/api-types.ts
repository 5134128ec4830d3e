// Writes the API types that the dashboard is checked against, and the calls that each scope of a key allows, from the
// documents that the server's code generates.
import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { silentLog } from '../src/base/log.ts'
import { SecretBox } from '../src/base/secret-box.ts'
import { createHttpServer, type ServerDeps } from '../src/http/server.ts'
import type { DeskDeps } from '../src/operator/desk/deps.ts'
import { createDesk } from '../src/operator/desk/desk.ts'

const root = resolve(import.meta.dirname, '..')
const types = join(root, 'dashboard/src/api')

/** Routes describe themselves before any call, so this server needs no services behind it. */
async function readDocuments(): Promise<{ app: string; api: string }> {
  const settings: ServerDeps['settings'] = {
    publicUrl: '',
    managedDomain: 'inbox.test',
    mailHost: 'mx.test',
    trustedProxies: [],
    isHttpsOn: false,
    hasAcme: false,
    maxDownloadBytes: 1,
    bodyMemoryBytes: 1 << 20,
  }
  const dashboard = { isDevelopment: true, showsCaptured: true, pagesFolder: root } as ServerDeps['dashboard']
  const deps = {
    settings,
    dashboard,
    keyRing: {},
    log: silentLog,
    secretBox: new SecretBox(randomBytes(32)),
  }
  const server = createHttpServer(deps as unknown as ServerDeps)
  const read = async (path: string) => {
    const { statusCode, body } = await server.inject(path)
    if (statusCode !== 200) throw new Error(`${path} answers ${statusCode}`)
    return body
  }
  const documents = { app: await read('/app/openapi.json'), api: await read('/openapi.json') }
  await server.close()
  return documents
}

async function readDeskDocument(): Promise<string> {
  const desk = createDesk({ log: silentLog, settings: { pagesFolder: root } } as unknown as DeskDeps)
  await desk.ready()
  const document = JSON.stringify(desk.swagger())
  await desk.close()
  return document
}

/** The generator needs TypeScript's JavaScript API, so it is installed next to a TypeScript that has one. */
function generate(document: string, name: string): void {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-types-'))
  try {
    const from = join(folder, 'openapi.json')
    writeFileSync(from, document)
    const stranger = createRequire(join(root, 'tests/stranger/package.json'))
    const program = join(dirname(stranger.resolve('openapi-typescript/package.json')), 'bin/cli.js')
    const { status, stderr } = spawnSync(process.execPath, [program, from, '-o', join(types, name)], {
      encoding: 'utf8',
    })
    if (status !== 0) throw new Error(`openapi-typescript failed: ${stderr}`)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

interface Operation {
  security?: Record<string, string[]>[]
}

function callsOfScopes(document: string): Record<string, string[]> {
  const calls: Record<string, string[]> = {}
  const paths: Record<string, Record<string, Operation>> = JSON.parse(document).paths
  for (const [path, operations] of Object.entries(paths))
    for (const [method, { security = [] }] of Object.entries(operations))
      for (const scope of security.flatMap((scheme) => Object.values(scheme).flat()))
        (calls[scope] ??= []).push(`${method.toUpperCase()} ${path}`)
  return calls
}

const { app, api } = await readDocuments()
generate(app, 'app.gen.ts')
const calls = JSON.stringify(callsOfScopes(api), null, 2)
writeFileSync(
  join(types, 'calls.gen.ts'),
  `/** The calls of the API that each scope of a key allows. */\nexport const callsOfScope: Record<string, string[]> = ${calls}\n`,
)
generate(await readDeskDocument(), 'desk.gen.ts')
