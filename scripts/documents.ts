// The OpenAPI documents that the server's code generates.
import { randomBytes } from 'node:crypto'
import { resolve } from 'node:path'
import { silentLog } from '../src/base/log.ts'
import { SecretBox } from '../src/base/secret-box.ts'
import { createHttpServer, type ServerDeps } from '../src/http/server.ts'
import type { DeskDeps } from '../src/operator/desk/deps.ts'
import { createDesk } from '../src/operator/desk/desk.ts'

export const root = resolve(import.meta.dirname, '..')

/** Routes describe themselves before any call, so this server needs no services behind it. */
export async function readDocument(path: '/openapi.json' | '/app/openapi.json'): Promise<string> {
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
    // The routes of callers with a key. They read it only in a call.
    keyRing: {},
    log: silentLog,
    secretBox: new SecretBox(randomBytes(32)),
  }
  const server = createHttpServer(deps as unknown as ServerDeps)
  const { statusCode, body } = await server.inject(path)
  await server.close()
  if (statusCode !== 200) throw new Error(`${path} answers ${statusCode}`)
  return body
}

export async function readDeskDocument(): Promise<string> {
  const desk = createDesk({ log: silentLog, settings: { pagesFolder: root } } as unknown as DeskDeps)
  await desk.ready()
  const document = JSON.stringify(desk.swagger())
  await desk.close()
  return document
}
