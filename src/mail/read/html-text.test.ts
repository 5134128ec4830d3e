// Tests the text that is read from HTML.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { htmlToText } from './html-text.ts'

const pages: [html: string, text: string][] = [
  ['<p>One</p><p>Two</p>', 'One\n\nTwo'],
  ['<div>One</div>\n<div>Two<br>Three<br><br>Four</div>', 'One\nTwo\nThree\n\nFour'],
  ['a <b>b</b><i>c</i> \n d', 'a bc d'],
  ['<html><head><title>t</title><style>p{}</style></head><body>x<script>1<2</script>y</body>', 'xy'],
  ['<!-- <p>no</p> -->yes<!DOCTYPE html>', 'yes'],
  ['<ul><li>One<li>Two</ul>end', '* One\n* Two\n\nend'],
  ['<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>', 'a b\nc'],
  ['<a href="https://a.example/x?a=1&amp;b=2">Click</a>', 'Click [https://a.example/x?a=1&b=2]'],
  ['<a href="https://a.example">https://a.example</a>', 'https://a.example'],
  ['<a href="mailto:a@a.example">a@a.example</a> <a href="javascript:alert(1)">x</a>', 'a@a.example x'],
  ['<a href=https://a.example title="x > y">z</a>', 'z [https://a.example]'],
  [
    'new<blockquote>old<br>older<blockquote>oldest</blockquote></blockquote>',
    'new\n\n> old\n> older\n\n> > oldest',
  ],
  ['<pre>  a\n    b\n</pre>c', '  a\n    b\n\nc'],
  [
    '&lt;b&gt; &amp;amp; &eacute;&#233;&#xe9; &nbsp;&unknown; &#0;&#x110000;&#xd800;',
    '<b> &amp; ééé &unknown; \uFFFD\uFFFD\uFFFD',
  ],
  ['1 < 2 && 3 > 2', '1 < 2 && 3 > 2'],
  ['a<p title="unclosed>text</p>more', 'a'],
  ['a<!-->b<!--->c<!-- d --!>e<!-- f', 'abce'],
  ['<head><title>t</title><meta name="x"><p>no end of the head', 'no end of the head'],
  ['<div>One<p>Two</div>Three</span></section>Four', 'One\n\nTwo\n\nThreeFour'],
  ['Donau&shy;dampf&shy;schiff', 'Donaudampfschiff'],
  ['<img src="x" alt="no">', ''],
  ['', ''],
]

test('hostile 2: quote marks never make the text longer than its HTML: the last marks are dropped', () => {
  const html = `${'<blockquote>'.repeat(10)}<pre>${'x\n\n\n'.repeat(50_000)}`
  const text = htmlToText(html)
  assert.ok(text.length <= html.length + 1024)
  assert.ok(text.startsWith(`${'> '.repeat(10)}x\n\n\n${'> '.repeat(10)}x\n`))
  assert.ok(text.endsWith('x\n\n\nx'))
  assert.equal(text.match(/x/g)?.length, 50_000)
})

for (const [html, text] of pages) test(JSON.stringify(html), () => assert.equal(htmlToText(html), text))
