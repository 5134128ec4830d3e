// Gives the search dialog of VitePress the roles that screen readers need: a dialog, with links as its options.
import type { Plugin } from 'vitepress'

/** Each part of the component's template, and its replacement. */
const replacements: [part: RegExp, replacement: string][] = [
  // A button may not contain other controls.
  [
    /role="button"\s+:aria-owns="[^"]*"\s+aria-expanded="true"\s+aria-haspopup="listbox"/g,
    'role="dialog" aria-modal="true"',
  ],
  [/type="search"/g, `type="search" role="combobox" :aria-expanded="results?.length ? 'true' : 'false'"`],
  // The label has an icon only.
  [/ aria-labelledby="localsearch-label"/g, ' aria-label="Search"'],
  [
    /:aria-labelledby="results\?\.length \? 'localsearch-label' : undefined"/g,
    `:aria-label="results?.length ? 'Pages' : undefined"`,
  ],
  // An option may not contain a link, but a link may be an option.
  [/:id="'localsearch-item-' \+ index"\s+:aria-selected="[^"]*"\s+role="option"/g, 'role="none"'],
  [
    /:aria-label="\[\.\.\.p\.titles, p\.title\]\.join\([^)]*\)"/g,
    `:id="'localsearch-item-' + index" :aria-selected="selectedIndex === index ? 'true' : 'false'" role="option"`,
  ],
  // A key without a role may not have a label.
  [/<kbd :aria-label/g, '<kbd role="img" :aria-label'],
]

/** Fails the build if a version of VitePress has another template. */
export function searchDialog(): Plugin {
  return {
    name: 'posthorn:search-dialog',
    enforce: 'pre',
    transform(code, id) {
      if (!id.endsWith('/VPLocalSearchBox.vue')) return null
      let text = code
      for (const [part, replacement] of replacements) {
        const changed = text.replaceAll(part, replacement)
        if (changed === text) this.error(`the search dialog has no ${part}`)
        text = changed
      }
      return text
    },
  }
}
