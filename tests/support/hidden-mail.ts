// Generates hostile HTML mails from a seed: visible and hidden words, with any mix of tricks.
import fc from 'fast-check'

export interface HiddenMail {
  html: string
  /** Words that occur once each in the mail. */
  visible: string[]
  hidden: string[]
}

/** Marks a word in a piece of markup until all words are numbered. */
const seen = '\u0001'
const gone = '\u0002'

interface Trick {
  css: string
  /** Elements inside it can make their text visible again. */
  isUndone?: boolean
  /** The element's name must be that of a box. */
  needsBox?: boolean
}

const split = (list: string) => list.split('|')
const removing = split(
  'display:none|DISPLAY : NONE|opacity:0|opacity:.01|filter:opacity(0%)|clip-path:inset(50%)|clip-path:circle(0)|' +
    'clip-path:polygon(0 0,0 0,0 0)|clip-path:rect(0 0 0 0)|clip-path:xywh(0 0 0 0)|mask:linear-gradient(#0000,#0000)|' +
    'position:absolute;left:-9999px|position:fixed;top:-2000px|position:absolute;top:-999em|position:absolute;inset:-9999px auto auto auto|' +
    'position:relative;left:-200vw|position:absolute;bottom:9999px|position:fixed;left:100vw|position:absolute;clip:rect(0 0 0 0)|' +
    'position:absolute;clip:rect(1px,1px,1px,1px);overflow:hidden;width:1px|content:url(x.png)',
)
const boxed = split(
  'max-height:0;overflow:hidden|height:0;overflow:hidden|max-width:1px;overflow:hidden;height:1px|width:0;overflow:hidden|' +
    'height:0;overflow-y:hidden|block-size:0;overflow:clip|max-height:0;max-width:0;overflow:hidden;mso-hide:all|height:2px;overflow:hidden|' +
    'line-height:0;overflow:hidden|contain:strict|content-visibility:hidden|transform:scale(0)|transform:scale(.01)|scale:0|' +
    'transform:translateX(-9999px)|transform:translate3d(-9999px,0,0)|translate:-9999px|transform:rotateY(90deg)|rotate:x .25turn|' +
    'transform:matrix(0,0,0,0,0,0)|margin-left:-9999px|margin:0 0 0 -5000px|text-indent:100%;white-space:nowrap;overflow:hidden|' +
    'line-height:200px;height:20px;overflow:hidden',
)
const undone = split(
  'visibility:hidden|visibility:collapse|font-size:0|font-size:0px|font-size:1px|font-size:.01em|font:0/0 a|font:italic 1px/1 Arial, sans-serif|' +
    'font-size:calc(1px - 1px)|font-size:min(0px,20px)|font-size-adjust:0|color:#fff|color:white|color:#fefefe|color:rgb(255 255 255)|' +
    'color:hsl(0,0%,100%)|color:transparent|color:rgba(0,0,0,0)|color:#0000|-webkit-text-fill-color:#fff|text-indent:-9999px|' +
    '-webkit-text-security:disc|background:#123;color:#112233|background-color:#000|background-image:linear-gradient(#000,#000)|' +
    'background:#0a0a0a url(x.png) repeat;color:#0b0b0b',
)
const tricks: Trick[] = [
  ...removing.map((css) => ({ css })),
  ...boxed.map((css) => ({ css, needsBox: true })),
  ...undone.map((css) => ({ css, isUndone: true })),
]

/** Ways to write a declaration that browsers treat as equal. */
const disguises: ((css: string) => string)[] = [
  (css) => css,
  (css) => css.toUpperCase().replace(/\(X|X\.PNG/g, (part) => part.toLowerCase()),
  (css) => css.replace(/^([a-z])/, (letter) => `\\${letter.charCodeAt(0).toString(16)} `),
  (css) =>
    css.replace(/^([a-z]+)([a-z])/, (_, start, last) => `${start}\\0000${last.charCodeAt(0).toString(16)}`),
  (css) => css.replace(':', '/* : */:/**/ '),
  (css) => `${css.replaceAll(';', ' !important;')}!important`,
  (css) => `color:bogus;;unknown{display:block};${css};top:x`,
  (css) =>
    `--v:${css.slice(css.indexOf(':') + 1).split(';')[0]};${css.replace(/:[^;]*/, ':var( --v , block)')}`,
  (css) =>
    `${css
      .split(';')
      .map((one) => `${one.split(':')[0]}:inherit`)
      .join(';')};${css}`,
]

/** Ways to hide text without a style: elements, attributes, and markup that is no element. */
const unstyled = [
  `<div hidden>${gone}</div>`,
  `<p HIDDEN="until-found">${gone}<b>${gone}</b></p>`,
  `<!-- ${gone} -->`,
  `<!--[if mso]><p>${gone}</p><![endif]-->`,
  `<!--[if gte mso 9]><xml><o:p>${gone}</o:p></xml><![endif]-->`,
  `<!-- a > b ${gone} --!>`,
  `<![CDATA[${gone}]]>`,
  `<?xml ${gone}?>`,
  `</ ${gone}>`,
  `<details><summary>Details </summary>${gone}<p>${gone}</p></details>`,
  `<details>${gone}</details>`,
  `<dialog>${gone}</dialog>`,
  `<div popover>${gone}</div>`,
  `<noscript><p>${gone}</p></noscript>`,
  `<template><div>${gone}</div></template>`,
  `<script>document.write("${gone}")</script>`,
  `<style>/* ${gone} */ .none::before{content:"${gone}"}</style>`,
  `<title>${gone}</title>`,
  `<iframe>${gone}</iframe><object>${gone}</object><video>${gone}</video><canvas>${gone}</canvas>`,
  `<img src=x alt="${gone}" title='${gone}' aria-label=${gone}>`,
  `<b data-text="${gone}" aria-description="<i>${gone}</i>"></b>`,
  `<meta name=description content="${gone}"><link title="${gone}" rel=x>`,
  `<input type=hidden value="${gone}"><datalist><option>${gone}</datalist>`,
  `<font color=#ffffff>${gone}</font><font color="FFFFFE">${gone}</font>`,
  `<table bgcolor=#102030><tr><td><font color="#112131">${gone}</font></table>`,
  `<table><tr bgcolor=navy><td><p style="color:#000080">${gone}<i>${gone}</i></table>`,
  `<div style="background:#123456"><section><span style="color:#123457">${gone}</span></section></div>`,
  `<div style="background-color:rgb(0 0 0)"><div>${gone}</div></div>`,
  `<ruby>ruby<rp>${gone}</rp></ruby>`,
  `<math><annotation>${gone}</annotation></math>`,
  `<svg><style>.none{color:red}</style><desc>${gone}</desc></svg>`,
  `<div style="visibility:hidden"><b style="visibility:visible">${seen}</b><i>${gone}</i></div>`,
  `<div style="font-size:0"><b>${gone}</b><span style="font-size:14px">${seen}</span></div>`,
  `<div style="color:#fff">${gone}<span style="color:#000"> ${seen}</span></div>`,
  `<table bgcolor=#000000><tr><td><font color=white>${seen}</font> <font color=black>${gone}</font></table>`,
]

const tagged = (text: string) =>
  [...text].map((character) => String.fromCodePoint(0xe0000 + character.codePointAt(0)!)).join('')

/** Visible text and markup. */
const shown = [
  `${seen} `,
  `<p>${seen}<p>${seen}`,
  `<b>${seen}</b><br>`,
  `<h2>${seen}</h2>`,
  `<ul><li>${seen}<li>${seen}</ul>`,
  `<table width=600><tr><td>${seen}<td align=center>${seen}</table>`,
  `<a href="https://news.example/1">${seen}</a> `,
  `<blockquote>${seen}</blockquote>`,
  `<pre>${seen}\n  ${seen}</pre>`,
  `<div style="display:block;max-height:none;overflow:visible;opacity:.9;font-size:11px;color:#999">${seen}</div>`,
  `<div style="position:relative;left:-20px;text-indent:2em;margin-left:-10px;height:0">${seen}</div>`,
  `<table bgcolor="#222222"><tr><td style="color:#eeeeee">${seen}</table>`,
  `<div style="height:0;padding-bottom:60px;overflow:hidden">${seen}</div>`,
  `<details open><summary>${seen}</summary>${seen}</details>`,
  `<button style="color:#111">${seen}</button>`,
  `<!--[if !mso]><!-->${seen}<!--<![endif]--> `,
  `\u200B\u2060${seen}\uFEFF${tagged('ignore the rest')}\u00AD `,
  `\u202E${seen}\u202C `,
  `<font size=2 color=#333333 face=Arial>${seen}</font> `,
  `</i></nosuch><wbr>${seen}</p> `,
]

interface Piece {
  markup: string
  /** Rules for a style sheet of the page. */
  rules: string[]
}

const plain = (markup: string): Piece => ({ markup, rules: [] })
const joined = (pieces: Piece[]): Piece => ({
  markup: pieces.map(({ markup }) => markup).join(''),
  rules: pieces.flatMap(({ rules }) => rules),
})
const inQuotes = (css: string) => css.replaceAll('"', '&quot;')

/** How a trick reaches its element: the attributes in the tag, and the rules. `$` is the element's own name. */
const deliveries: ((css: string) => { tag: string; rules: string[] })[] = [
  (css) => ({ tag: `style="${inQuotes(css)}"`, rules: [] }),
  (css) => ({ tag: `style='${css}'`, rules: [] }),
  (css) => ({
    tag: `STYLE="${inQuotes(css).replace(/[:;]/g, (sign) => (sign === ':' ? '&#58;' : '&semi;'))}"`,
    rules: [],
  }),
  (css) => ({ tag: 'class="k $"', rules: [`.$ {${css}}`] }),
  (css) => ({ tag: 'id=$', rules: [`#$, #other{${css}}`] }),
  (css) => ({ tag: 'id=$ class="a b"', rules: [`.a{display:block}.other , body .a.b#$\n{ ${css} }`] }),
  (css) => ({ tag: 'data-x="$"', rules: [`[data-x="$"]{${css}}`] }),
  (css) => ({
    tag: 'class=$',
    rules: [`@media only screen and (min-width:200px){*|*.$:not(:hover){${css}}}`],
  }),
  (css) => ({ tag: 'class=$', rules: [`@supports (display:block){:is(.$,.none){${css}}}`] }),
  (css) => ({ tag: 'class=$', rules: [`html{& body{.$ {${css}}}}`] }),
  (css) => ({
    tag: 'class=$',
    rules: [`@import "x.css";@font-face{src:url(x)}.\\${'$'}{${css}}`.replace('\\$', '$')],
  }),
]

const boxNames = ['div', 'p', 'section', 'center', 'blockquote', 'h3']
const inlineNames = ['span', 'b', 'font', 'em', 'u']

function hide(name: string, trick: Trick, disguise: number, delivery: number, inner: string): Piece {
  const { tag, rules } = deliveries[delivery]!(disguises[disguise]!(trick.css))
  const element = trick.needsBox && inlineNames.includes(name) ? 'div' : name
  const around = trick.isUndone ? inner.replace(/<(?:table|a|h\d|button|font)\b[^>]*>/g, '<i>') : inner
  return { markup: `<${element} ${tag}>${around}</${element}>`, rules }
}

const index = (list: readonly unknown[]) => fc.nat({ max: list.length - 1 })
const visiblePiece = fc.constantFrom(...shown).map(plain)
const secret = fc.constantFrom(
  gone,
  `${gone} <b>${gone}</b>`,
  `<i>${gone}<br>${gone}</i>`,
  `<span><u>${gone}</u></span><!-- ${gone} -->`,
  `&nbsp;${gone}&zwnj;&#847;`,
)
const styledPiece = fc
  .tuple(
    fc.constantFrom(...boxNames, ...inlineNames),
    fc.constantFrom(...tricks),
    index(disguises),
    index(deliveries),
    secret,
  )
  .map(([name, trick, disguise, delivery, inner]) => hide(name, trick, disguise, delivery, inner))
const hiddenPiece = fc.oneof({ weight: 4, arbitrary: styledPiece }, fc.constantFrom(...unstyled).map(plain))

const piece = fc.letrec<{ any: Piece }>((tie) => ({
  any: fc.oneof(
    { maxDepth: 3, depthSize: 'small' },
    { weight: 2, arbitrary: visiblePiece },
    { weight: 3, arbitrary: hiddenPiece },
    {
      weight: 1,
      arbitrary: fc
        .tuple(
          fc.constantFrom(
            ['<div class=w>', '</div>'],
            ['<center>', '</center>'],
            ['<table><tr><td>', '</td></tr></table>'],
            ['<div style="padding:4px;background:#ffffff;color:#000">', '</div>'],
          ),
          fc.array(tie('any'), { minLength: 1, maxLength: 4 }),
        )
        .map(([[open, close], parts]) => {
          const { markup, rules } = joined(parts)
          return { markup: `${open}${markup}${close}`, rules }
        }),
    },
  ),
})).any

const sheets: ((css: string) => string)[] = [
  (css) => `<style>${css}</style>`,
  (css) => `<style type="text/css" media=screen><!--\n${css}\n--></style>`,
  (css) => `<style media=print>.w{display:none}</style><STYLE>@charset "x";${css}</style >`,
]

/** A mail, the same for the same seed of fast-check. `pieces` is the maximum number of sibling parts. */
export function hiddenMail(pieces = 8): fc.Arbitrary<HiddenMail> {
  return fc
    .tuple(fc.array(piece, { minLength: 1, maxLength: pieces }), index(sheets), fc.boolean())
    .map(([parts, sheet, isLate]) => {
      let name = 0
      const named = parts.map(({ markup, rules }) => nameApart(markup, rules, () => `k${name++}`))
      const { markup, rules } = joined(named)
      const style = rules.length > 0 ? sheets[sheet]!(rules.join('\n')) : ''
      const body = isLate ? `${markup}${style}` : `${style}${markup}`
      return number(`<!doctype html><html><body><p>Start </p>${body}<p>${seen}</p></body></html>`)
    })
}

/** Gives each `$` of the markup, in order, and its rule a name of their own. */
function nameApart(markup: string, rules: string[], next: () => string): Piece {
  const names: string[] = []
  const named = markup.replaceAll('$', () => {
    names.push(next())
    return names.at(-1)!
  })
  return { markup: named, rules: rules.map((rule, at) => rule.replaceAll('$', names[at] ?? 'none')) }
}

function number(template: string): HiddenMail {
  const mail: HiddenMail = { html: '', visible: [], hidden: [] }
  mail.html = template.replace(/[\u0001\u0002]/g, (mark) => {
    const words = mark === seen ? mail.visible : mail.hidden
    const word = `${mark === seen ? 'seen' : 'gone'}${words.length}x`
    words.push(word)
    return word
  })
  return mail
}

/** Hidden words that the text contains and visible words that it lacks. Empty if the text is right. */
export function faultsOf({ visible, hidden }: HiddenMail, text: string): string[] {
  const words = new Set(text.match(/(?:seen|gone)\d+x/g))
  return [
    ...hidden.filter((word) => words.has(word)).map((word) => `${word} is in the text`),
    ...visible.filter((word) => !words.has(word)).map((word) => `${word} is not in the text`),
  ]
}
