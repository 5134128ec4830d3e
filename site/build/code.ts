// Highlights code by classes instead of inline styles, which the content security policy forbids.
import { createCssVariablesTheme, type ShikiTransformer } from 'shiki'

const prefix = '--code-'
/** Names the color of each token by a CSS variable. */
export const syntaxTheme = createCssVariablesTheme({
  name: 'posthorn',
  variablePrefix: prefix,
  fontStyle: false,
})

/** Replaces the style of each token, which is one variable, by a class: `code-token-keyword`. */
export const flatCode: ShikiTransformer = {
  name: 'posthorn:flat-code',
  pre(node) {
    delete node.properties['style']
  },
  span(node) {
    const [, name] = /^color:var\(--(code-[\w-]+)\)$/.exec(String(node.properties['style'])) ?? []
    delete node.properties['style']
    if (name) node.properties['class'] = name
  },
}
