// The guide at /guide: every link of every page holds, unknown paths are refused, and the texts for models are complete.
import assert from 'node:assert/strict'
import { existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import files from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join, posix, resolve } from 'node:path'
import { before, test } from 'node:test'
import { relink } from '../../site/build/pages.ts'
import { guideFolder } from '../../src/http/document/guide.ts'
import { buildGuide, createGuideApi } from '../support/guide.ts'
import { type Scope, until } from '../support/until.ts'

const root = resolve(import.meta.dirname, '../..')
const api = createGuideApi()

/** Paths of the service that pages may refer to. */
const ofService = ['/', '/docs']

before(buildGuide)

const get = (url: string, headers: Record<string, string> = {}) => api.inject({ url, headers })

/** The pages by their URL. */
function readPages(): Map<string, string> {
  const names = globSync('**/*.html', { cwd: guideFolder }).filter((name) => name !== '404.html')
  const urlOf = (name: string) => `/guide/${name.replace(/(^|\/)index\.html$/, '$1').replace(/\.html$/, '')}`
  return new Map(names.map((name) => [urlOf(name), readFileSync(join(guideFolder, name), 'utf8')]))
}

const idsOf = (html: string) => new Set([...html.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id!))

test('every link and every anchor of every page leads to something', async (t) => {
  const pages = readPages()
  assert.ok(pages.size > 50, `${pages.size} pages`)
  const known = new Map<string, number>()
  const broken: string[] = []
  let links = 0
  for (const [url, html] of pages)
    for (const [, href] of html.matchAll(/ (?:href|src)="([^"]+)"/g)) {
      const target = new URL(href!.replaceAll('&amp;', '&'), `http://guide${url}`)
      if (target.host !== 'guide' || ofService.includes(target.pathname)) continue
      links++
      const path = target.pathname
      if (!known.has(path)) known.set(path, (await get(path)).statusCode)
      const anchor = decodeURIComponent(target.hash.slice(1))
      const hasAnchor = anchor === '' || idsOf(pages.get(path) ?? '').has(anchor)
      if (known.get(path) !== 200 || !hasAnchor) broken.push(`${url}: ${href}`)
    }
  t.diagnostic(`${pages.size} pages, ${links} links to ${known.size} paths`)
  assert.deepEqual([...new Set(broken)], [])
})

test('a page loads nothing from other hosts and needs no inline script or style', async () => {
  for (const [url, html] of readPages()) {
    assert.doesNotMatch(html, /<(?:script|link|img|iframe)[^>]* (?:src|href)="(?:https?:)?\/\//, url)
    assert.doesNotMatch(html, /<script(?![^>]* src=)|<style| style="| on[a-z]+="/, url)
  }
  const { headers } = await get('/guide/')
  const policy = String(headers['content-security-policy'])
  assert.match(policy, /^default-src 'none'; script-src 'self'; style-src 'self';/)
  assert.doesNotMatch(policy, /unsafe/)
})

test('unknown paths get the page of the guide with 404, and never a file outside it', async () => {
  for (const path of [
    ...['nowhere', 'agents.html', 'agents/', '404.html', 'assets/', 'internals', '..%2fpackage.json'],
    ...['assets/..%2f..%2fpackage.json', '..%5cpackage.json', '%00', 'a'.repeat(9_000)],
  ]) {
    const { statusCode, body, headers } = await get(`/guide/${path}`)
    assert.equal(statusCode, 404, path)
    assert.match(String(headers['content-type']), /^text\/html/, path)
    assert.match(body, /<title>404 \| Posthorn<\/title>/, path)
  }
  assert.equal((await api.inject({ url: '/guide/', method: 'POST' })).statusCode, 404)
  const redirects = { '/guide': '/guide/', '/guide/sdk': '/guide/sdk/' }
  for (const [path, target] of Object.entries(redirects)) {
    const { statusCode, headers } = await get(path)
    assert.deepEqual([statusCode, headers.location], [308, target])
  }
})

test('pages are compressed and revalidated, and their hashed files are kept', async () => {
  const whole = await get('/guide/agents')
  const small = await get('/guide/agents', { 'accept-encoding': 'gzip' })
  assert.deepEqual([whole.statusCode, small.headers['content-encoding']], [200, 'gzip'])
  assert.ok(small.rawPayload.length < whole.rawPayload.length / 2)
  const again = await get('/guide/agents', { 'if-none-match': String(whole.headers.etag) })
  assert.deepEqual([again.statusCode, again.headers['cache-control']], [304, 'no-cache'])
  const script = / src="(\/guide\/assets\/app[^"]+)"/.exec(whole.body)![1]!
  assert.match(String((await get(script)).headers['cache-control']), /immutable/)
  const head = await api.inject({ url: '/guide/agents', method: 'HEAD' })
  assert.deepEqual([head.statusCode, head.body], [200, ''])
})

test('llms.txt lists every page as Markdown, and llms-full.txt has their text', async () => {
  const index = await get('/llms.txt')
  assert.equal(index.headers['content-type'], 'text/plain; charset=utf-8')
  assert.equal((await get('/guide/llms.txt')).body, index.body)
  const listed = [...index.body.matchAll(/\]\((\/guide\/[^)]+\.md)\)/g)].map(([, path]) => path!)
  assert.equal(listed.length, readPages().size)
  for (const path of listed) {
    const { statusCode, headers, body } = await get(path)
    assert.deepEqual([statusCode, headers['content-type']], [200, 'text/markdown; charset=utf-8'], path)
    // Links of the Markdown form lead to other Markdown forms.
    for (const [, target] of body
      .replaceAll(/^\s*```[\s\S]*?^\s*```/gm, '')
      .matchAll(/\]\((?!https:)([^()#]+)[^()]*\)/g))
      assert.equal(
        (await get(posix.join(posix.dirname(path), target!))).statusCode,
        200,
        `${path}: ${target}`,
      )
  }
  const full = (await get('/llms-full.txt')).body
  for (const text of ['# Agents\n', '# Using the API\n', '# Operating\n'])
    assert.ok(full.includes(text), text)
})

test('a link to a file that the guide does not publish becomes its text', () => {
  const paths = new Map([
    ['docs/agents.md', 'agents.md'],
    ['docs/internals/api.md', 'internals/api.md'],
    ['deploy/README.md', 'deploy/index.md'],
  ])
  const text = [
    ...[
      'See [agents](../agents.md#wait), [the\nfiles](../../deploy/README.md), [`caddy`](../../deploy/caddy/Caddyfile)',
    ],
    ...[
      'and [RFC](https://example.org/a.md) or [below](#below).',
      '```md',
      '[x](../../src/app.ts)',
      '```',
      '',
    ],
  ].join('\n')
  assert.equal(
    relink(text, 'docs/internals/api.md', paths),
    text
      .replace('../../deploy/README.md', '../deploy/index.md')
      .replace('[`caddy`](../../deploy/caddy/Caddyfile)', '`caddy`'),
  )
})

test('every relative link of a Markdown file leads to a file of the repository', () => {
  const pages = globSync(['{docs,decisions,deploy,sdk}/**/*.md', '*.md'], {
    cwd: root,
    exclude: (path) => path.includes('node_modules'),
  })
  const broken = pages.flatMap((page) => {
    const text = readFileSync(join(root, page), 'utf8').replaceAll(/^\s*```[\s\S]*?^\s*```/gm, '')
    const targets = [...text.matchAll(/\]\((?!https:)([^()#\s]+)[^()]*\)/g)].map(([, target]) => target!)
    return targets
      .filter((target) => !existsSync(join(root, dirname(page), target)))
      .map((one) => `${page}: ${one}`)
  })
  assert.deepEqual(broken, [])
})

/** An API with a guide of its own, which is not built. */
function ownGuide(scope: Scope) {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-guide-'))
  const dist = join(folder, 'dist')
  const other = createGuideApi(dist)
  scope.after(async () => {
    await other.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const build = (first: string) => {
    mkdirSync(dist)
    const files = { 'index.html': first, 'agents.html': 'agents', '404.html': 'missing', 'llms.txt': 'index' }
    for (const [name, text] of Object.entries(files)) writeFileSync(join(dist, name), text)
  }
  return { dist, build, get: (path: string) => other.inject(path) }
}

test('a guide that is not built says so, and appears after its build', async (t) => {
  const { build, get } = ownGuide(t)
  const answer = await get('/guide/')
  assert.deepEqual([answer.statusCode, /npm run build/.test(answer.body)], [503, true])
  build('first')
  await until('the guide', async () => (await get('/guide/')).body === 'first')
  assert.equal((await get('/guide/new')).body, 'missing')
})

test('while the guide is built again, files that were read before are served, and others say so', async (t) => {
  const { dist, build, get } = ownGuide(t)
  build('first')
  assert.equal((await get('/guide/')).body, 'first')
  rmSync(dist, { recursive: true })
  const now = performance.now.bind(performance)
  t.mock.method(performance, 'now', () => now() + 60_000)
  assert.equal((await get('/guide/')).body, 'first')
  for (const path of ['agents', 'nowhere']) {
    const { statusCode, body } = await get(`/guide/${path}`)
    assert.deepEqual([statusCode, /npm run build/.test(body)], [503, true], path)
  }
  build('second')
  await until('the new build', async () => (await get('/guide/')).body === 'second')
})

test('many requests at once list the folder once, and read a file once', async (t) => {
  const { build, get } = ownGuide(t)
  build('first')
  const [listed, read] = [t.mock.method(files, 'readdir'), t.mock.method(files, 'readFile')]
  syncBuiltinESMExports()
  t.after(() => {
    t.mock.restoreAll()
    syncBuiltinESMExports()
  })
  const answers = await Promise.all(Array.from({ length: 20 }, () => get('/guide/')))
  assert.ok(answers.every(({ body }) => body === 'first'))
  assert.deepEqual([listed.mock.callCount(), read.mock.callCount()], [1, 1])
})
