// Built, rebuilt and missing pages: the server sends existing files, and retries files that could not be read.
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import fastify from 'fastify'
import { BuiltPages } from './built-pages.ts'

async function serve(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-pages-'))
  const server = fastify()
  t.after(async () => {
    await server.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const pages = new BuiltPages(folder)
  server.get('/assets/*', async (request, reply) => {
    const { '*': name } = request.params as { '*': string }
    return (await pages.sendFile(request, reply, name)) ?? reply.code(404).send('none')
  })
  server.get('/', (_request, reply) =>
    pages.sendPage(reply, 'index.html', { directives: [], notBuilt: 'not built' }),
  )
  const get = async (url: string) => {
    const { statusCode, body } = await server.inject({ url })
    return [statusCode, body]
  }
  return { folder, get }
}

test('a page appears after its first build, and changes after the next', async (t) => {
  const { folder, get } = await serve(t)
  assert.deepEqual(await get('/'), [503, 'not built'])
  const file = join(folder, 'index.html')
  writeFileSync(file, 'first')
  assert.deepEqual(await get('/'), [200, 'first'])
  assert.deepEqual(await get('/'), [200, 'first'])
  writeFileSync(file, 'second')
  utimesSync(file, new Date(), new Date(Date.now() + 5_000))
  assert.deepEqual(await get('/'), [200, 'second'])
  rmSync(file)
  assert.deepEqual(await get('/'), [503, 'not built'])
})

test('a file that was missing or unreadable is sent once it can be read', async (t) => {
  const { folder, get } = await serve(t)
  assert.equal((await get('/assets/a.js'))[0], 404)
  mkdirSync(join(folder, 'assets/a.js'), { recursive: true })
  assert.equal((await get('/assets/a.js'))[0], 500)
  rmSync(join(folder, 'assets/a.js'), { recursive: true })
  writeFileSync(join(folder, 'assets/a.js'), '1')
  assert.deepEqual(await get('/assets/a.js'), [200, '1'])
  rmSync(join(folder, 'assets/a.js'))
  assert.deepEqual(await get('/assets/a.js'), [200, '1'])
})

test('no file name leads out of its folder', async (t) => {
  const { folder, get } = await serve(t)
  mkdirSync(join(folder, 'assets'))
  writeFileSync(join(folder, 'secret.txt'), 'secret')
  for (const name of ['..%2fsecret.txt', '%2e%2e%2fsecret.txt', '..%5csecret.txt', '.secret', 'x%00'])
    assert.equal((await get(`/assets/${name}`))[0], 404, name)
})
