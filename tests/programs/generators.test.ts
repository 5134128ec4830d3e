// Clients that four generators make from the live document compile strictly and make calls, and a linter finds no fault in it.
import assert from 'node:assert/strict'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { before, test } from 'node:test'
import { run } from '../support/command.ts'
import { DnsServer } from '../support/dns-server.ts'
import { makePlace, startNode } from '../support/node.ts'
import { inherited } from '../support/service.ts'

const root = resolve(import.meta.dirname, '../..')
const programs = join(root, 'tests/generators')
const packages = join(programs, 'node_modules')
const isCurrent = existsSync(packages) && outdated().length === 0
const missing = isCurrent ? false : 'install the generators: (cd tests/generators && npm ci)'
const generators = createRequire(join(programs, 'package.json'))
const stranger = createRequire(join(root, 'tests/stranger/package.json'))

/** A generator, and the file with the types that it made. */
interface Generator {
  name: string
  program: string
  args(document: string): string[]
  made: string
}

const all = (): Generator[] => [
  {
    name: 'openapi-typescript',
    program: programOf(stranger, 'openapi-typescript', 'bin/cli.js'),
    args: (document) => [document, '-o', 'generated/openapi-typescript/api.ts'],
    made: 'openapi-typescript/api.ts',
  },
  {
    name: 'hey-api',
    program: programOf(generators, '@hey-api/openapi-ts', 'bin/run.js'),
    args: (document) => ['-i', document, '-o', 'generated/hey-api'],
    made: 'hey-api/types.gen.ts',
  },
  {
    name: 'orval',
    program: programOf(generators, 'orval', 'dist/bin/orval.mjs'),
    args: () => ['--fail-on-warnings'],
    made: 'orval/api.ts',
  },
  {
    name: 'swagger-typescript-api',
    program: programOf(generators, 'swagger-typescript-api', 'dist/cli.mjs'),
    args: (document) => [
      ...['generate', '-p', document, '-o', 'generated/swagger-typescript-api'],
      ...['--enum-style', 'union'],
    ],
    made: 'swagger-typescript-api/Api.ts',
  },
]

const options = {
  target: 'es2024',
  module: 'nodenext',
  strict: true,
  rewriteRelativeImportExtensions: true,
  types: ['node'],
  outDir: 'made',
  // The libraries are checked by those who publish them.
  skipLibCheck: true,
}

before(() => assert.ok(!process.env['CI'] || !missing, `in CI nothing is skipped: ${missing}`))

test('clients of four generators compile under --strict, and every answer to their calls is right', {
  skip: missing,
}, async (t) => {
  const place = await makePlace(t)
  const dns = await DnsServer.start({})
  place.after(() => dns.close())
  const node = await startNode(place, {
    env: { POSTHORN_DELIVERY: 'capture', POSTHORN_DNS: dns.address, POSTHORN_MAIL_HOST: 'mx.posthorn.test' },
  })
  const { http } = node.app.listening
  const base = `http://${http?.host}:${http?.port}`
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-generators-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const clients = all()
  writeProject(folder, base, clients)
  const execute = async (program: string, args: string[]) => {
    const { status, stdout, stderr } = await run(process.execPath, [program, ...args], inherited(), folder)
    assert.equal(status, 0, `${stdout}\n${stderr}`)
    return stdout + stderr
  }

  for (const { name, program, args, made } of clients)
    await t.test(`${name} generates without a warning, without any and without a doubled name`, async () => {
      assert.doesNotMatch(await execute(program, args(`${base}/openapi.json`)), /warn|⚠|error/i)
      const types = withoutComments(readFileSync(join(folder, 'generated', made), 'utf8'))
      assert.doesNotMatch(types, /\bany\b/)
      // A generator numbers a name that it would give to two things.
      assert.doesNotMatch(types, /^export (?:type|interface|enum|const) [A-Z]\w*[a-z]\d+\b/m)
    })

  await t.test('all four compile under --strict', async () => {
    await execute(join(root, 'node_modules/typescript/bin/tsc'), ['-p', '.'])
  })

  for (const { name } of clients)
    await t.test(`${name}: every answer to the calls of its client is right`, async () => {
      const { secret } = await node.createCaller()
      assert.equal(await execute(`made/${name}.js`, [base, secret]), 'every answer is right\n')
    })

  await t.test('spectral:oas finds nothing in the document', async () => {
    assert.equal(await execute('made/spectral.js', [`${base}/openapi.json`]), '0 problems\n')
  })
})

/** The packages of the lock file that are not installed in its version. Optional ones may be absent. */
function outdated(): string[] {
  const versionsIn = (path: string) => {
    const lock = JSON.parse(readFileSync(join(programs, path), 'utf8'))
    return lock.packages as Record<string, { version?: string; optional?: boolean }>
  }
  const installed = versionsIn('node_modules/.package-lock.json')
  return Object.entries(versionsIn('package-lock.json'))
    .filter(([path]) => path !== '')
    .filter(([path, { version, optional }]) =>
      installed[path] ? installed[path].version !== version : !optional,
    )
    .map(([path]) => path)
}

/** A package of somebody who generates clients: the programs, and the configuration of tsc and orval. */
function writeProject(folder: string, base: string, clients: Generator[]): void {
  cpSync(programs, folder, { recursive: true, filter: (path) => path !== packages })
  symlinkSync(packages, join(folder, 'node_modules'))
  const files = ['spectral.ts', ...clients.map(({ name }) => `${name}.ts`)]
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: options, files }))
  mkdirSync(join(folder, 'generated'))
  const output = { target: 'generated/orval/api.ts', client: 'fetch', baseUrl: base }
  const orval = { posthorn: { input: `${base}/openapi.json`, output } }
  writeFileSync(join(folder, 'orval.config.js'), `export default ${JSON.stringify(orval)}`)
}

/** The path of a program in a package. The export of `package.json` is the only one that each of them has. */
function programOf(from: NodeJS.Require, name: string, path: string): string {
  return join(dirname(from.resolve(`${name}/package.json`)), path)
}

function withoutComments(text: string): string {
  // The runtime of swagger-typescript-api, which is the same for each document, is in the file with its types.
  const [types] = text.split('export type QueryParamsType')
  return types!.replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*/g, '')
}
