// A customer's client: types generated from the live document compile with a story, which then runs against the service.
import assert from 'node:assert/strict'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { run } from '../support/command.ts'
import { proveDomain } from '../support/customer-domain.ts'
import { DnsServer } from '../support/dns-server.ts'
import { makePlace, startNode } from '../support/node.ts'
import { inherited } from '../support/service.ts'
import { startReceiver } from '../support/webhook-receiver.ts'

const stranger = resolve(import.meta.dirname, '../stranger')
const root = resolve(import.meta.dirname, '../..')
const options = {
  target: 'es2024',
  module: 'nodenext',
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  erasableSyntaxOnly: true,
  verbatimModuleSyntax: true,
  rewriteRelativeImportExtensions: true,
  types: ['node'],
  outDir: 'made',
  skipLibCheck: true,
}

test('a stranger’s client generated from the document compiles, and runs the tour and a story', async (t) => {
  const place = await makePlace(t)
  const dns = await DnsServer.start({
    'far.test': { MX: [[10, 'mx.far.test']] },
    'mx.far.test': { A: ['192.0.2.9'] },
  })
  place.after(() => dns.close())
  const node = await startNode(place, {
    env: {
      POSTHORN_DELIVERY: 'capture',
      POSTHORN_DNS: dns.address,
      POSTHORN_MAIL_HOST: 'mx.posthorn.test',
      POSTHORN_ALLOW_PRIVATE_NETWORKS: 'true',
    },
  })
  const { http } = node.app.listening
  const base = `http://${http?.host}:${http?.port}`
  const { api, secret } = await node.createCaller()
  await proveDomain(api, dns, 'shop.test', ['outbound'])
  const receiver = await startReceiver(t)

  const folder = mkdtempSync(join(tmpdir(), 'posthorn-stranger-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  copyFileSync(join(stranger, 'story.ts'), join(folder, 'story.ts'))
  // The unchanged tour, except for its types, which are generated from the document.
  mkdirSync(join(folder, 'tour'))
  for (const file of ['api.ts', 'bounce.ts', 'receiver.ts', 'tour.ts'])
    copyFileSync(join(root, 'src/cli/demo', file), join(folder, 'tour', file))
  writeFileSync(
    join(folder, 'tour/schemas.ts'),
    "import type { components } from '../document.ts'\nexport type Schemas = components['schemas']",
  )
  writeFileSync(join(folder, 'package.json'), '{"type": "module"}')
  writeFileSync(
    join(folder, 'tsconfig.json'),
    JSON.stringify({ compilerOptions: options, files: ['story.ts'] }),
  )
  const execute = async (file: string, args: string[]) => {
    const { status, stdout, stderr } = await run(process.execPath, [file, ...args], inherited(), folder)
    assert.equal(status, 0, `${stdout}\n${stderr}`)
    return stdout
  }
  const tools = join(stranger, 'node_modules')
  await execute(join(tools, 'openapi-typescript/bin/cli.js'), [`${base}/openapi.json`, '-o', 'document.ts'])
  await execute(join(tools, 'typescript/bin/tsc'), ['-p', '.'])
  const told = await execute('made/story.js', [base, secret, 'shop.test', receiver.url('/story')])
  assert.match(told, /the story is told\n$/)
})
