// The guide as built, which `npm ci` does, and an API without a service that serves it.
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { silentLog } from '../../src/base/log.ts'
import { createApi } from '../../src/http/create-api.ts'
import { guideFolder, serveGuide } from '../../src/http/document/guide.ts'

const root = resolve(import.meta.dirname, '../..')

/** Builds the guide if it is missing. */
export function buildGuide(): void {
  if (existsSync(join(guideFolder, 'llms.txt'))) return
  execFileSync(join(root, 'node_modules/.bin/vitepress'), ['build', 'site'], { cwd: root, stdio: 'ignore' })
}

export function createGuideApi(folder = guideFolder) {
  const api = createApi([], silentLog)
  serveGuide(api, folder)
  return api
}
