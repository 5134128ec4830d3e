// Writes the API types that the dashboard is checked against, from the documents that the server's code generates.
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
const documentPath = '/app/openapi.json'
const types = join(root, 'dashboard/src/api')

/** Routes describe themselves before any call, so this server needs no services behind it. */
async function readAppDocument(): Promise<string> {
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
    keyRing: null,
    log: silentLog,
    secretBox: new SecretBox(randomBytes(32)),
  }
  const server = createHttpServer(deps as unknown as ServerDeps)
  const { statusCode, body } = await server.inject(documentPath)
  await server.close()
  if (statusCode !== 200) throw new Error(`${documentPath} answers ${statusCode}`)
  return body
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

generate(await readAppDocument(), 'app.gen.ts')
generate(await readDeskDocument(), 'desk.gen.ts')
