// Tests styles that hide text and styles that only seem to, as the pixels of Chromium show it for each.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readHtmlText } from '../html-text.ts'

const read = (body: string) => readHtmlText(`<!doctype html><p>Seen</p>${body}`).text
const ofClass = (css: string) => `<style>${css}</style><div class=x>WORD</div>`

const hiding = [
  ...['left:-9999px;left:bogus', 'left:-9999px;left:none', 'left:-9999px;left:5'].map(
    (css) => `<div style="position:absolute;${css}">WORD</div>`,
  ),
  ...[
    'clip-path:rect(0 0 0 0)',
    "clip-path:path('M0 0')",
    'mask:linear-gradient(#0000,#0000)',
    'transform:scale(.01)',
    'transform:rotateY(.25turn)',
    'transform:translateX(calc(-100% - 50px))',
    'contain:strict',
    'contain:paint;height:0',
    'height:3px;overflow:hidden',
    'line-height:0;overflow:hidden',
    'line-height:200px;height:20px;overflow:hidden',
    'text-indent:100%;white-space:nowrap;overflow:hidden',
    'font-size-adjust:0',
    'zoom:0.01',
    '-webkit-text-security:disc',
    'content:url(x.png)',
    'background-image:linear-gradient(#000,#000);color:#000',
    'position:fixed;left:100vw',
    'position:absolute;bottom:9999px',
  ].map((css) => `<div style="${css}">WORD</div>`),
  ...[
    'body{container-type:inline-size}@container (min-width:1px){.x{display:none}}',
    '@supports not (a:b){.x{display:none}}',
    '.x{display:none}@supports (a:b){.x{display:block!important}}',
    '@supports not (a:b){.x{display:none}}@supports (a:b){.x{display:block!important}}',
    '@scope (body){.x{display:none}}',
    '@layer a,b;@layer b{.x{display:none}}@layer a{.x{display:block}}',
    '@property --a{syntax:"*";inherits:false;initial-value:none}.x{display:var(--a)}',
    '@media (min-resolution:1dpi) and (min-aspect-ratio:1/100) and (monochrome:0){.x{display:none}}',
    '*|*.x{display:none}',
    '[|class]{display:none}',
    'div:state(x),.x{display:none}',
    '.x::first-line{font-size:0}',
  ].map(ofClass),
  '<div style="display:flex"><span style="max-height:0;overflow:hidden">WORD</span></div>',
  '<table style="transform:scale(0)"><tr><td>WORD</table>',
  '<details><summary>x</summary><p style="display:block">WORD</p></details>',
  '<details><summary>x</summary><summary>WORD</summary></details>',
  '<dialog open hidden>WORD</dialog>',
  '<p>x<noscript><p>WORD</p></noscript>',
  '<xmp><style>.x{display:block!important}</style></xmp><div class=x style="display:none">WORD</div>',
  '<svg><style>.x&#123;display:none}</style></svg><div class=x>WORD</div>',
]

const showing = [
  ...[
    'height:0;padding-bottom:50px;overflow:hidden',
    'background:linear-gradient(red,blue);-webkit-background-clip:text;color:transparent',
    'transform:scale(.5)',
    'zoom:0',
    'mask:linear-gradient(#000,#0000)',
    'max-height:0;max-height:none;overflow:hidden',
  ].map((css) => `<div style="${css}">WORD</div>`),
  ...[
    '.x{display:none}@supports (display:grid){.x{display:block!important}}',
    '@media not (a:b){.x{display:none}}',
    '@media (max-resolution:1dpi){.x{display:none}}',
    '|div.x{display:none}',
  ].map(ofClass),
  '<div style="color:#fff"><button>WORD</button></div>',
  '<div style="font-size:0"><font size=4>WORD</font></div>',
  '<xmp>WORD</xmp>',
]

test('style that hides text in Chromium hides it here', () => {
  for (const body of hiding) assert.doesNotMatch(read(body), /WORD/, body)
  assert.equal(readHtmlText('<frameset></frameset>WORD').text, '')
})

test('style that shows text in Chromium shows it here', () => {
  for (const body of showing) assert.match(read(body), /WORD/, body)
})
