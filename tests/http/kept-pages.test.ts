// Content that is the same for everyone is sent once to each client, compressed, and a failed load is tried again.
import assert from 'node:assert/strict'
import { get } from 'node:http'
import { after, test } from 'node:test'
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import Fastify from 'fastify'
import { serveDocs } from '../../src/http/document/docs.ts'
import { makeAsset } from '../../src/web/asset.ts'
import { setStage } from './stage.ts'

const stage = await setStage({ after })

/** Returns the answer as sent on the wire. `fetch` would decompress it. */
function ask(path: string, headers: Record<string, string> = {}) {
  return new Promise<{ status: number; headers: NodeJS.Dict<string | string[]>; bytes: number }>(
    (resolve, reject) => {
      get(stage.base + path, { headers }, (response) => {
        let bytes = 0
        response.on('data', (chunk: Buffer) => (bytes += chunk.length))
        response.on('end', () => resolve({ status: response.statusCode!, headers: response.headers, bytes }))
      }).on('error', reject)
    },
  )
}

const gzip = { 'accept-encoding': 'br, gzip' }

for (const path of ['/docs', '/docs/script.js', '/openapi.json'])
  test(`${path} is compressed for clients that accept it, and not sent again to clients that have it`, async () => {
    const [whole, small] = [await ask(path), await ask(path, gzip)]
    assert.deepEqual([whole.status, small.status, small.headers['content-encoding']], [200, 200, 'gzip'])
    assert.ok(small.bytes < whole.bytes / 1.5, `${small.bytes} of ${whole.bytes} bytes`)
    assert.equal(small.headers['vary'], 'accept-encoding')
    assert.equal((await ask(path, { 'accept-encoding': 'gzip;q=0, br' })).bytes, whole.bytes)
    const known = await ask(path, { 'if-none-match': `"other", ${whole.headers['etag']}` })
    assert.deepEqual([known.status, known.bytes], [304, 0])
    assert.equal((await ask(path, { 'if-none-match': 'W/"other"' })).status, 200)
  })

test('the named script is cached forever, and the page is revalidated', async () => {
  const html = await (await fetch(`${stage.base}/docs`)).text()
  const script = /src="(\/docs\/script\.js[^"]*)"/.exec(html)![1]!
  assert.match(String((await ask(script, gzip)).headers['cache-control']), /immutable/)
  for (const path of ['/docs', '/docs/script.js', '/docs/script.js?v=other', '/openapi.json'])
    assert.equal((await ask(path, gzip)).headers['cache-control'], 'no-cache', path)
  const { headers } = await ask('/docs', gzip)
  assert.match(String(headers['content-security-policy']), /^default-src 'none'; script-src 'self' 'sha256-/)
})

test('every client that accepts anything gets the start page, and only browsers get a page at unknown paths', async () => {
  const answers: Record<string, unknown[]> = {}
  for (const [path, accept] of [
    ['/', undefined],
    ['/', '*/*'],
    ['/', 'application/json'],
    ['/mail', '*/*'],
    ['/mail', 'text/html,*/*;q=0.8'],
  ] as const) {
    const { status, headers } = await ask(path, accept === undefined ? {} : { accept })
    answers[`${path} ${accept}`] = [status, headers['content-type']]
  }
  // This stage has no pages. The server sends a text that says so instead.
  const [page, none] = [
    [503, 'text/plain; charset=utf-8'],
    [404, 'application/json; charset=utf-8'],
  ]
  assert.deepEqual(answers, {
    '/ undefined': page,
    '/ */*': page,
    '/ application/json': none,
    '/mail */*': none,
    '/mail text/html,*/*;q=0.8': page,
  })
})

test('a page that failed to render is rendered once for the next client', async () => {
  const page = await makeAsset('text/html; charset=utf-8', '<p>here</p>')
  let tries = 0
  const render = async () => {
    tries++
    if (tries === 1) throw new Error('no memory')
    return { page, script: page, contentSecurityPolicy: '' }
  }
  const api = Fastify().withTypeProvider<TypeBoxTypeProvider>()
  serveDocs(api, render)
  const statuses = []
  for (let count = 0; count < 3; count++) statuses.push((await api.inject('/docs')).statusCode)
  assert.deepEqual(statuses, [500, 200, 200])
  assert.equal(tries, 2)
  await api.close()
})
