// The folder that holds the built pages, and whether the build has run.
import { existsSync } from 'node:fs'
import { join } from 'node:path'

/** `npm run build` writes the pages to this folder. */
export const pagesFolder = join(import.meta.dirname, '../../dashboard/dist')

export const notBuiltWords = 'the dashboard is not built: run `npm run build` in the folder of Posthorn'

/** The build writes every page or none. */
export function arePagesBuilt(folder: string): boolean {
  return existsSync(join(folder, 'index.html'))
}
