// Emits the script that sets the theme before the first paint: small, hashed, and not a module, because modules run later.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Plugin } from 'vite'

export function earlyTheme(): Plugin {
  const source = readFileSync(join(import.meta.dirname, '../src/early-theme.js'), 'utf8')
  const digest = createHash('sha256').update(source).digest('base64url').slice(0, 8)
  const fileName = `assets/theme-${digest}.js`
  return {
    name: 'posthorn:early-theme',
    apply: 'build',
    buildStart() {
      this.emitFile({ type: 'asset', fileName, source })
    },
    transformIndexHtml: () => [{ tag: 'script', attrs: { src: `/${fileName}` }, injectTo: 'head' }],
  }
}
