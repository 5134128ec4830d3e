// Checks imports against the table of ARCHITECTURE.md, and forbids cycles.
import assert from 'node:assert/strict'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { parse, readProduct, readSources, type SourceFile } from './source.ts'

const outward = ['flow', 'store', 'mail/address', 'mail/domain-name', 'base']

/** The imports each room may have besides its own files: rooms, or single files without their extension. */
const table: Record<string, string[]> = {
  base: [],
  mail: ['base'],
  dns: ['base'],
  mailauth: ['mail', 'dns', 'base'],
  smtp: ['mail', 'base'],
  acme: ['base'],
  scan: ['base'],
  webhook: ['base'],
  blobs: ['base'],
  postgres: ['base'],
  store: ['postgres', 'base'],
  flow: ['base', 'mail', 'dns', 'mailauth', 'smtp', 'acme', 'scan', 'webhook', 'blobs', 'postgres', 'store'],
  worker: ['postgres', 'store', 'base'],
  web: ['base'],
  http: [...outward, 'web', 'postgres/db'],
  operator: [...outward, 'web', 'http/errors', 'http/body/parse-json', 'postgres/db'],
}

/** Besides its own files, a folder of flow/ may import the files of these folders, and follow these arrows. */
const everyFlows = ['flow', 'flow/secrets']
const arrows = ['flow/accounts/delete-organization → flow/mailbox/delete-inbox']

const files = readProduct()
const imports = new Map(files.map((file) => [name(file.path), importsOf(file)]))

/** Shortens `src/mail/address.ts` to `mail/address`. */
function name(path: string): string {
  return path.replace(/^src\//, '').replace(/\.ts$/, '')
}

function importsOf(file: SourceFile): string[] {
  const { module } = parse(file)
  const fixed = module.staticImports.map(({ moduleRequest }) => moduleRequest.value)
  const passedOn = module.staticExports.flatMap(({ entries }) =>
    entries.map((entry) => entry.moduleRequest?.value ?? ''),
  )
  const late = module.dynamicImports.map(({ moduleRequest: { start, end } }) =>
    file.text.slice(start + 1, end - 1),
  )
  const ours = [...fixed, ...passedOn, ...late].filter(
    (request) => request.startsWith('.') && !request.endsWith('/package.json'),
  )
  return [...new Set(ours.map((request) => name(join(dirname(file.path), request))))]
}

function room(file: string): string {
  return file.split('/')[0]!
}

/** Files directly in src/ assemble the rooms: they may import everything, and no room imports them. */
function isComposition(file: string): boolean {
  return !file.includes('/') || ['cli', 'config', 'roles'].includes(room(file))
}

function isAllowed(from: string, to: string): boolean {
  if (isComposition(from)) return true
  if (room(from) === 'flow' && room(to) === 'flow')
    return [dirname(from), ...everyFlows].includes(dirname(to)) || arrows.includes(`${from} → ${to}`)
  if (room(from) === room(to)) return true
  return (table[room(from)] ?? []).some((entry) => entry === room(to) || entry === to)
}

test('fences: every folder of src/ has a row in the import table', () => {
  const unknown = [...imports.keys()].filter((file) => !isComposition(file) && !(room(file) in table))
  assert.deepEqual(unknown, [], 'add the folder to the table here and in ARCHITECTURE.md')
})

test('fences: every import obeys the table', () => {
  const wrong = [...imports].flatMap(([from, targets]) =>
    targets.filter((to) => !isAllowed(from, to)).map((to) => `${from} → ${to}`),
  )
  assert.deepEqual(wrong, [], 'these imports are not in the table of ARCHITECTURE.md')
})

function refuseCircles(graph: Map<string, string[]>): void {
  const finished = new Set<string>()
  const visit = (file: string, trail: string[]): void => {
    if (trail.includes(file))
      assert.fail(`a circle: ${[...trail.slice(trail.indexOf(file)), file].join(' → ')}`)
    if (finished.has(file)) return
    for (const target of graph.get(file) ?? []) visit(target, [...trail, file])
    finished.add(file)
  }
  for (const file of graph.keys()) visit(file, [])
}

test('fences: imports form no circle', () => {
  refuseCircles(imports)
  const pages = readSources('dashboard/src/**/*.{ts,tsx}')
  refuseCircles(new Map(pages.map((file) => [name(file.path), importsOf(file)])))
})

test('fences: no file only re-exports others', () => {
  const barrels = files.filter(({ text }) => /^export (\*|\{[^}]*\}) from /m.test(text))
  assert.deepEqual(
    barrels.map(({ path }) => path),
    [],
    'import from the file that has it',
  )
})
