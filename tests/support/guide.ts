// The guide as built, which `npm ci` does, and an API without a service that serves it.
import { execFileSync } from 'node:child_process'
import { globSync } from 'node:fs'
import { resolve } from 'node:path'
import { published } from '../../site/build/pages.ts'
import { silentLog } from '../../src/base/log.ts'
import { createApi } from '../../src/http/create-api.ts'
import { guideFolder, serveGuide } from '../../src/http/document/guide.ts'

const root = resolve(import.meta.dirname, '../..')

/** Its sources. A folder is newer after a file in it is added or removed. */
const sources = [
  ...globSync(published, { cwd: root }),
  ...['docs', 'decisions', 'dashboard/src/colors.css', 'package-lock.json'],
  ...['build', 'src', '.vitepress/config.ts', '.vitepress/theme'].map((name) => `site/${name}`),
]
const script = `newer=$(find "$@" -newer site/dist/llms.txt -print -quit) || newer=unknown
[ -z "$newer" ] || exec node_modules/.bin/vitepress build site`

/** Builds the guide if it is missing or older than its sources. Another test that builds it is awaited. */
export function buildGuide(): void {
  execFileSync('flock', ['site', 'sh', '-c', script, 'sh', ...sources], {
    cwd: root,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
}

export function createGuideApi(folder = guideFolder) {
  const api = createApi([], silentLog)
  serveGuide(api, folder)
  return api
}
