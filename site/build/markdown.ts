// How Markdown becomes HTML here: ids of headings as on Git hosts, and tables without empty headers.
import type { MarkdownRenderer } from 'vitepress'

/** The id that Git hosts give a heading, so that a link to it works there and here. */
export function headingId(title: string): string {
  return title
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, '')
    .replaceAll(' ', '-')
}

/** Makes an empty header cell a plain cell, because screen readers would announce a header without a name. */
export function withoutEmptyHeaders({ core }: MarkdownRenderer): void {
  core.ruler.push('empty-headers', ({ tokens }) => {
    for (const [index, { type, content }] of tokens.entries()) {
      const [open, close] = [tokens[index - 1], tokens[index + 1]]
      if (type === 'inline' && content === '' && open?.type === 'th_open') open.tag = close!.tag = 'td'
    }
  })
}
