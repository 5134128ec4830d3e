// Makes a rendered page fit a content security policy without inline scripts and inline styles.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const source = readFileSync(join(import.meta.dirname, '../src/early.js'), 'utf8')

/** The script that sets the theme before the first paint. It replaces the inline scripts of VitePress. */
export const earlyScript = {
  name: `assets/early.${createHash('sha256').update(source).digest('hex').slice(0, 8)}.js`,
  source,
}

/** Returns the page without inline scripts and styles. Throws if VitePress has written an unknown one. */
export function strictPage(html: string, base: string): string {
  const strict = html
    .replace(
      /<script id="check-dark-mode">.*?<\/script>/s,
      `<script src="${base}${earlyScript.name}"></script>`,
    )
    .replace(/\s*<script id="check-mac-os">.*?<\/script>/s, '')
    // Styles that the style sheet has, or that the script of the page sets anyway.
    .replaceAll(/ style="(?:position:relative|--vp-vh:0px);"/g, '')
  const found = /<script(?![^>]* src=)[^>]*>|<style[^>]*>|<[^>]* style="[^"]*"|<[^>]* on[a-z]+="[^"]*"/i.exec(
    strict,
  )
  if (found) throw new Error(`the policy of the guide does not allow ${found[0].slice(0, 200)}`)
  return strict
}
