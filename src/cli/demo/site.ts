// The service of the tour: the data folder's running development service, or a temporary one that ends with the tour.

import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLog } from '../../base/log.ts'
import { formatAddress, reachable } from '../../config/setting-values.ts'
import { readSettings, type Settings } from '../../config/settings.ts'
import { openFoundation } from '../../foundation.ts'
import { openDevelopment } from '../welcome.ts'

export interface TourSite {
  origin: 'running' | 'fresh'
  /** Base URL of the API, without a trailing slash. */
  http: string
  secret: string
  /** Ends the service that was started for the tour. Resolves once it has ended, however often it is called. */
  leave(): Promise<void>
}

const answerLimitMs = 3_000

/** Returns the service of these settings if it runs, is in development, and accepts the development key. Otherwise null. */
export async function findRunning(settings: Settings): Promise<TourSite | null> {
  if (!settings.isDevelopment || settings.http.port === 0) return null
  const secret = await readFile(join(settings.dataDir, 'development-key'), 'utf8').catch(() => null) // no key: no service yet
  if (secret === null) return null
  const http = `http://${formatAddress(reachable(settings.http))}`
  const headers = { 'x-api-key': secret.trim() }
  const profile = await fetch(`${http}/v1/me`, { headers, signal: AbortSignal.timeout(answerLimitMs) }).catch(
    () => null,
  ) // no answer
  await profile?.body?.cancel()
  return profile?.status === 200
    ? {
        origin: 'running',
        http,
        secret: secret.trim(),
        leave: async () => {},
      }
    : null
}

/** Starts a service in a temporary folder, on free ports, with its own database. Leaves nothing behind. Uses your clamd. */
export async function startTemporary({ clamd }: Settings): Promise<TourSite> {
  const folder = await mkdtemp(join(tmpdir(), 'posthorn-demo-'))
  const anyPort = '127.0.0.1:0'
  const listeners = { POSTHORN_HTTP: anyPort, POSTHORN_OPERATOR: anyPort, POSTHORN_SMTP: anyPort }
  const settings = { ...readSettings({ POSTHORN_DATA_DIR: folder, ...listeners }), clamd }
  const endings: (() => Promise<void>)[] = [
    () => rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }),
  ]
  const endAll = async () => {
    for (const end of endings.reverse()) await end()
  }
  let leaving: Promise<void> | null = null
  const leave = () => (leaving ??= endAll())
  try {
    const foundation = await openFoundation(settings, createLog('error', 'pretty'), () => {})
    endings.push(() => foundation.close())
    const { startApp } = await import('../../app.ts')
    const app = await startApp(foundation, settings.roles)
    endings.push(() => app.stop())
    const { secret } = await openDevelopment(foundation)
    const http = `http://${formatAddress(app.listening.http!)}`
    return { origin: 'fresh', http, secret: secret!, leave }
  } catch (error) {
    await leave()
    throw error
  }
}
