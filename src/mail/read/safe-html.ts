// Reduces a mail's HTML to text, tables and pictures that are safe in a browser: nothing that runs, loads, covers or asks.
import sanitizeHtml from 'sanitize-html'
import { maxSafeHtml, type SafeHtml } from './shown-html.ts'

/** Deeper than any mail that people read. Each level takes a level of the browser's stack. */
const maxDepth = 200

const tags = [
  ...[
    'a',
    'abbr',
    'address',
    'article',
    'aside',
    'b',
    'bdi',
    'bdo',
    'big',
    'blockquote',
    'br',
    'caption',
    'center',
  ],
  ...[
    'cite',
    'code',
    'col',
    'colgroup',
    'dd',
    'del',
    'details',
    'dfn',
    'div',
    'dl',
    'dt',
    'em',
    'figcaption',
    'figure',
  ],
  ...[
    'font',
    'footer',
    'h1',
    'h2',
    'h3',
    'h4',
    'h5',
    'h6',
    'header',
    'hr',
    'i',
    'img',
    'ins',
    'kbd',
    'li',
    'main',
  ],
  ...[
    'mark',
    'nav',
    'ol',
    'p',
    'pre',
    'q',
    's',
    'samp',
    'section',
    'small',
    'span',
    'strike',
    'strong',
    'sub',
  ],
  ...[
    'summary',
    'sup',
    'table',
    'tbody',
    'td',
    'tfoot',
    'th',
    'thead',
    'time',
    'tr',
    'tt',
    'u',
    'ul',
    'var',
    'wbr',
  ],
]
const layout = ['align', 'valign', 'width', 'height', 'bgcolor', 'dir', 'lang', 'title']
const color = [/^#[0-9a-f]{3,8}$/i, /^[a-z]{1,20}$/i, /^(?:rgb|hsl)a?\([\d\s.,%/]{1,50}\)$/i]
const length = [
  /^(?:-?\d{1,5}(?:\.\d{1,4})?(?:px|pt|em|rem|%|ch|ex)?|auto|normal|0)(?:\s+(?:\d{1,5}(?:\.\d{1,4})?(?:px|pt|em|rem|%)?|auto)){0,3}$/i,
]
/** Only colors may have parentheses: no url(), no image(). */
const border = [/^(?=.{1,80}$)(?:[\w\s#.%-]|\b(?:rgb|hsl)a?\([\d\s.,%/]{1,50}\))+$/i]
const word = [/^[a-z-]{1,30}$/i]

/** No positions, no z-index, no url(): nothing that leaves the mail's area or sends a request. */
const styles = {
  ...Object.fromEntries(['color', 'background-color'].map((name) => [name, color])),
  ...Object.fromEntries(
    [
      ...['margin', 'margin-top', 'margin-right', 'margin-bottom', 'margin-left', 'padding', 'padding-top'],
      ...['padding-right', 'padding-bottom', 'padding-left', 'width', 'max-width', 'min-width', 'height'],
      ...['font-size', 'line-height', 'letter-spacing', 'border-radius', 'text-indent', 'border-spacing'],
    ].map((name) => [name, length]),
  ),
  ...Object.fromEntries(
    ['border', 'border-top', 'border-right', 'border-bottom', 'border-left', 'border-color'].map((name) => [
      name,
      border,
    ]),
  ),
  ...Object.fromEntries(
    [
      ...[
        'text-align',
        'vertical-align',
        'font-weight',
        'font-style',
        'text-decoration',
        'text-transform',
        'display',
      ],
      ...[
        'white-space',
        'border-collapse',
        'border-style',
        'list-style-type',
        'direction',
        'word-break',
        'float',
        'clear',
      ],
    ].map((name) => [name, [...word, /^\d{3}$/]]),
  ),
  'font-family': [/^[\w\s,'"-]{1,200}$/],
}

/** Returns the HTML in a form that is safe to show. */
export function safeHtml(html: string): SafeHtml {
  let remoteImages = 0
  const safe = sanitizeHtml(html.slice(0, maxSafeHtml), {
    allowedTags: tags,
    allowedAttributes: {
      '*': [...layout, 'style', 'class'],
      a: ['href', 'rel', 'target'],
      img: ['src', 'alt', 'data-remote-src', 'data-cid'],
      ol: ['start', 'type'],
      td: ['colspan', 'rowspan', 'nowrap'],
      th: ['colspan', 'rowspan', 'nowrap', 'scope'],
      table: ['border', 'cellpadding', 'cellspacing', 'role'],
      font: ['color', 'face', 'size'],
      time: ['datetime'],
    },
    // Classes have no effect, because the styles that they name are not let in.
    allowedClasses: { '*': [] },
    allowedStyles: { '*': styles },
    allowedSchemes: ['http', 'https', 'mailto', 'tel'],
    allowedSchemesByTag: { img: ['data'] },
    allowProtocolRelative: false,
    disallowedTagsMode: 'discard',
    nonTextTags: [
      'script',
      'style',
      'textarea',
      'option',
      'noscript',
      'title',
      'template',
      'svg',
      'math',
      'object',
    ],
    nestingLimit: maxDepth,
    transformTags: {
      // A linked page gets no referrer and no handle on this page.
      a: (tagName, { href = '', ...attribs }) => ({
        tagName,
        attribs: { ...attribs, ...linkOf(href) },
      }),
      // The mail's own `data-remote-src` is dropped, because only we set it.
      img: (tagName, { src = '', 'data-remote-src': _remote, 'data-cid': _cid, ...attribs }) => {
        const source = sourceOf(src)
        if ('data-remote-src' in source) remoteImages++
        return { tagName, attribs: { ...attribs, ...source } }
      },
    },
  })
  return { html: safe, remoteImages, isCut: html.length > maxSafeHtml }
}

/** A link without a scheme would point into the pages that show the mail. */
function linkOf(href: string): Record<string, string> {
  const address = href.trim()
  if (!/^(?:https?:\/\/|mailto:|tel:)/i.test(address)) return {}
  return { href: address, target: '_blank', rel: 'noopener noreferrer nofollow' }
}

/** Shows an image inside the mail, names an image in one of its parts, and only records the address of a remote image. */
function sourceOf(src: string): Record<string, string> {
  const address = src.trim()
  if (/^data:image\/(?:png|jpeg|gif|webp|bmp);base64,[A-Za-z0-9+/=\s]*$/i.test(address))
    return { src: address }
  if (/^cid:/i.test(address)) return { 'data-cid': address.slice(4, 504) }
  if (/^https?:\/\//i.test(address) && address.length <= 4_000) return { 'data-remote-src': address }
  return {}
}
