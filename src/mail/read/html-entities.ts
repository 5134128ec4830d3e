// Decodes character references of HTML: the Latin-1 names, other common names, and numbers.

// Names of U+00A0 to U+00FF in their order (HTML 4, 24.2.1).
const latin1 = `nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3
  acute micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring AElig
  Ccedil Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave
  Uacute Ucirc Uuml Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml igrave
  iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc uuml yacute thorn yuml`

const others: Record<string, string> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  euro: '€',
  ndash: '–',
  mdash: '—',
  lsquo: '‘',
  rsquo: '’',
  sbquo: '‚',
  ldquo: '“',
  rdquo: '”',
  bdquo: '„',
  lsaquo: '‹',
  rsaquo: '›',
  hellip: '…',
  bull: '•',
  trade: '™',
  dagger: '†',
  permil: '‰',
  minus: '−',
  rarr: '→',
  larr: '←',
  check: '✓',
  ensp: '\u2002',
  emsp: '\u2003',
  thinsp: '\u2009',
  zwnj: '\u200C',
  zwj: '\u200D',
  zwsp: '\u200B',
  // With these an attribute can write its style in a form that a simple reader does not expect.
  colon: ':',
  semi: ';',
  comma: ',',
  period: '.',
  num: '#',
  percnt: '%',
  lpar: '(',
  rpar: ')',
  sol: '/',
  bsol: '\\',
  lowbar: '_',
  excl: '!',
  ast: '*',
  plus: '+',
  equals: '=',
  hyphen: '\u2010',
  dash: '\u2010',
  Tab: '\t',
  NewLine: '\n',
  lbrace: '{',
  lcub: '{',
  rbrace: '}',
  rcub: '}',
  lsqb: '[',
  rsqb: ']',
}

const named = new Map(Object.entries(others))
for (const [index, name] of latin1.split(/\s+/).entries()) named.set(name, String.fromCodePoint(0xa0 + index))

/** `text` with its character references replaced. Unknown names stay. */
export function decodeEntities(text: string): string {
  if (!text.includes('&')) return text
  return text.replace(
    /&(?:#0*([0-9]{1,7})|#[xX]0*([0-9a-fA-F]{1,6})|([a-zA-Z][a-zA-Z0-9]{1,9}));?/g,
    (given, decimal, hex, name) => {
      if (name !== undefined) return named.get(name) ?? given
      const code = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal)
      const isCharacter = code > 0 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff)
      return isCharacter ? String.fromCodePoint(code) : '\uFFFD'
    },
  )
}
