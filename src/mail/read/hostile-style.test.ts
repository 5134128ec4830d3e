// Tests that style and markup made to take long take a bounded time.
import { test } from 'node:test'
import { inCpuTime } from '../../../tests/support/cpu-time.ts'
import { readHtmlText } from './html-text.ts'

test('hostile style and markup of 256 KiB takes at most two seconds of CPU, however nested', () => {
  const fill = (piece: string, length = 250_000) =>
    piece.repeat(Math.ceil(length / piece.length)).slice(0, length)
  const hostile = {
    'rules for all': `<style>${fill('*{opacity:1}', 120_000)}</style>${fill('<b>x', 120_000)}`,
    descendants: `<style>${fill('b b b b b b i{opacity:0}', 60_000)}</style>${fill('<b>', 60_000)}<i>x${fill('<i>x')}`,
    siblings: `<style>${fill('b~b~b~b~i{opacity:0}', 60_000)}</style>${fill('<b></b><i>x</i>')}`,
    attributes: `<style>${fill('[x~=b]{opacity:0}', 60_000)}</style><b x="${fill('a ', 100_000)}">${fill('<i x=a>y</i>', 60_000)}`,
    'nested rules': `<style>${fill('a{')}</style>x`,
    'nested brackets': `<style>${fill('a:not(')}</style>x`,
    'selectors without end': `<style>${fill('a,')}</style>x`,
    'one long compound': `<style>${fill('.a', 100_000)}{opacity:0}</style>${fill('<b class=a>x', 100_000)}`,
    classes: `<style>.a{opacity:0}</style>${fill('<b class="a b c d e f g h">x</b>')}`,
    declarations: `<b style="${fill('opacity:0;')}">x`,
    'other inline styles': Array.from({ length: 8_000 }, (_, at) => `<b style="top:${at}px">x</b>`).join(''),
    calc: `<b style="width:${fill('calc(1px + ')}">x`,
    variables: `<b style="${fill('--a:var(--b,var(--c))var(--a);')}color:var(--a)">x`,
    'open elements': fill('<div>'),
    formatting: `${fill('<p><b><i><u>x', 120_000)}${fill('</i></b>', 120_000)}`,
    'formatting again': `${fill('<b x=1>', 2_000)}${fill('</p><p>x')}`,
    links: fill('<a href=x><div>'),
    tables: fill('<table><td>'),
    'tables in rows': fill('<table><tr>x<b>'),
    'end tags': `${fill('<div><span>', 100_000)}${fill('</span></p></li>')}`,
    quotes: fill('<p a="\' b=\'" '),
    comments: fill('<!--a--'),
    styles: fill('<style>a{opacity:0}</style>'),
    'media queries': `<style>${fill('@media (((a) and (b)) or (c)){')}</style>x`,
    colors: `<b style="color:${fill('color-mix(in srgb,white,')}">x`,
    invisible: `x${'\u{E0041}'.repeat(100_000)}`,
    joiners: 'a\u200D'.repeat(100_000),
  }
  for (const [name, html] of Object.entries(hostile)) inCpuTime(2_000, () => readHtmlText(html), name)
})
