// Tests which HTML of a mail may be shown, and which never reaches a browser.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inCpuTime } from '../../../tests/support/cpu-time.ts'
import { safeHtml } from './safe-html.ts'

const harmless: [given: string, shown: string][] = [
  ['<p style="color: #123456">a <b>b</b></p>', '<p style="color:#123456">a <b>b</b></p>'],
  [
    '<p style="border: 1px solid rgb(1, 2, 3); border-top: 0 none hsla(1, 2%, 3%, .5)">x</p>',
    '<p style="border:1px solid rgb(1, 2, 3);border-top:0 none hsla(1, 2%, 3%, .5)">x</p>',
  ],
  ['<td colspan="2">x</td>', '<td colspan="2">x</td>'],
  ['<img src="cid:logo@x" alt="l">', '<img alt="l" data-cid="logo@x" />'],
  ['<img src="data:image/png;base64,AAAA">', '<img src="data:image/png;base64,AAAA" />'],
  [
    '<a href="https://example.com/?a=1&amp;b=2">x</a>',
    '<a href="https://example.com/?a=1&amp;b=2" target="_blank" rel="noopener noreferrer nofollow">x</a>',
  ],
  ['<a href="/keys">x</a><a href="#y" name="body">y</a>', '<a>x</a><a>y</a>'],
  ['<a href="https:keys">x</a>', '<a>x</a>'],
]

for (const [given, shown] of harmless)
  test(`safe html: it keeps the harmless part of ${given}`, () => assert.equal(safeHtml(given).html, shown))

test('safe html: a remote picture is counted, and its address is kept without loading it', () => {
  assert.deepEqual(safeHtml('<img src=" HTTPS://far.test/p.png?id=1" width="1">'), {
    html: '<img width="1" data-remote-src="HTTPS://far.test/p.png?id=1" />',
    remoteImages: 1,
    isCut: false,
  })
})

const hostile = [
  '<script>alert(1)</script>',
  '<img src=x onerror=alert(1)>',
  '<svg onload=alert(1)><script>alert(1)</script></svg>',
  '<math><mtext><img src=x onerror=alert(1)></mtext></math>',
  '<a href="javascript:alert(1)">x</a>',
  '<a href="&#106;avascript:alert(1)">x</a>',
  '<a href="data:text/html,<script>alert(1)</script>">x</a>',
  '<iframe src="https://far.test"></iframe>',
  '<object data="https://far.test"></object><embed src="https://far.test">',
  '<form action="https://far.test"><input name="password"><button>go</button></form>',
  '<meta http-equiv="refresh" content="0;url=https://far.test">',
  '<link rel="stylesheet" href="https://far.test/a.css">',
  '<base href="https://far.test/">',
  '<style>@import "https://far.test/a.css"; body { background: url(https://far.test/b) }</style>',
  '<p style="background-image: url(https://far.test/b)">x</p>',
  '<p style="border: 1px solid url(script)">x</p>',
  '<p style="border-color: red rgb(1, 2, 3) URL(script)">x</p>',
  '<p style="border-left: image(script)">x</p>',
  '<img data-remote-src="https://far.test/p.png" data-cid="script">',
  '<p style="position: fixed; top: 0; z-index: 9999">x</p>',
  '<p style="width: expression(alert(1))">x</p>',
  '<table background="https://far.test/b"><td background="//far.test/c">x</td></table>',
  '<img src="//far.test/p.png"><img srcset="https://far.test/p.png 2x">',
  '<video src="https://far.test/v" poster="https://far.test/p" autoplay></video><audio src="https://far.test/a">',
  '<noscript><p title="</noscript><img src=x onerror=alert(1)>"></noscript>',
  '<img src="data:image/svg+xml;base64,PHN2Zz4=">',
  '<p style="background: u\\72l(https://far.test/b)">x</p>',
]

const dangerous =
  /far\.test|alert|script|url\(|fixed|<(?:svg|form|input|iframe|meta|link|base|style|object|embed|video|audio|math)/i

for (const html of hostile)
  test(`safe html: it removes ${html}`, () => {
    const { html: shown } = safeHtml(html)
    assert.doesNotMatch(shown.replace(/data-remote-src="[^"]*"/g, ''), dangerous)
  })

test('safe html: depth, length and time are bounded', () => {
  const deep = `${'<div>'.repeat(200_000)}x${'</div>'.repeat(200_000)}`
  const { html, isCut } = inCpuTime(5_000, () => safeHtml(deep))
  assert.ok(html.length < 10_000)
  assert.ok(isCut)
})
