// Checks write access: a write through a read-only handle does not compile, and only flow/ and worker/ request a Writer.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { test } from 'node:test'
import { readProduct, root } from './source.ts'

/** Statements that a route could try with its pool. Each line that ends in `// no` must not compile. */
const route = `
import type { DomainId, OrganizationId } from '../../src/base/ids.ts'
import type { Db, Queryable, Tx, Writer } from '../../src/postgres/db.ts'
import { deleteDomainRow, findDomain } from '../../src/store/domains/domains.ts'
import { insertRoutes } from '../../src/store/sending/routes.ts'
declare const db: Db, reader: Queryable, writer: Writer, tx: Tx, id: DomainId, organizationId: OrganizationId
export const reads = [findDomain(db, organizationId, id), findDomain(reader, organizationId, id), findDomain(tx, organizationId, id)]
export const writes = [insertRoutes(writer, [], new Date()), insertRoutes(tx, [], new Date()), deleteDomainRow(tx, id)]
export const a: Tx = db // no
export const b: Tx = writer // no
export const c: Writer = reader // no
export const d: Tx = { query: async () => [] } // no
export const e = insertRoutes(db, [], new Date()) // no
export const f = insertRoutes(reader, [], new Date()) // no
export const g = deleteDomainRow(db, id) // no
export const h = deleteDomainRow(writer, id) // no
`

test('fences: code with a pool or a reader cannot write, since such a file does not compile', () => {
  const folder = mkdtempSync(join(root, 'tests/written-'))
  try {
    const file = join(folder, 'route.ts')
    writeFileSync(file, route)
    const { compilerOptions } = JSON.parse(readFileSync(join(root, 'tsconfig.json'), 'utf8'))
    const settings = join(folder, 'tsconfig.json')
    writeFileSync(settings, JSON.stringify({ compilerOptions, files: ['route.ts'] }))
    const { stdout } = spawnSync(join(root, 'node_modules/.bin/tsc'), ['-p', settings], {
      encoding: 'utf8',
      cwd: root,
    })
    const refused = [...stdout.matchAll(/route\.ts\((\d+),\d+\): error TS(?:2739|2740|2741|2345)/g)].map(
      ([, line]) => Number(line),
    )
    const marked = route.split('\n').flatMap((line, index) => (line.endsWith('// no') ? [index + 1] : []))
    assert.deepEqual([...new Set(refused)], marked, stdout)
    assert.equal(stdout.match(/error TS/g)?.length, marked.length, stdout)
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('fences: only flow/ opens transactions, and only flow/ and worker/ write through a pool', () => {
  const asking = (what: RegExp, rooms: RegExp) =>
    readProduct()
      .filter(({ path, text }) => what.test(text) && !rooms.test(path))
      .map(({ path }) => path)
  assert.deepEqual(asking(/\.transaction\(/, /^src\/flow\//), [], 'a Tx is opened in flow/ and handed on')
  assert.deepEqual(
    asking(/\bdb\.writer\b/, /^src\/(flow|worker)\//),
    [],
    'a Writer is asked for in flow/ and worker/',
  )
})

const writes = /\b(?:insert into|delete from|update \w+ (?:\w+ )?set|for (?:no key )?update\b)/

/** Returns the SQL functions that write, directly or through a function they call. */
function findWritingFunctions(): string[] {
  const folder = join(root, 'src/store/functions')
  const bodies = new Map(
    readdirSync(folder).map((file) => [basename(file, '.sql'), readFileSync(join(folder, file), 'utf8')]),
  )
  const found = new Set(['gin_clean_pending_list'])
  for (let before = -1; before !== found.size; ) {
    before = found.size
    for (const [name, body] of bodies) if (writes.test(body) || calls(body, found)) found.add(name)
  }
  return [...found]
}

function calls(text: string, functions: Iterable<string>): boolean {
  return new RegExp(`\\b(?:${[...functions].join('|')})\\(`).test(text)
}

test('fences: a row file writes with a Tx or a Writer, never with a reader', () => {
  const writing = findWritingFunctions()
  const wrong = readProduct()
    .filter(({ path }) => path.startsWith('src/store/'))
    .flatMap(({ path, text }) => {
      const parts = text.split(/^(?=(?:export )?(?:(?:async )?function|const) )/m)
      const isWriting = (part: string) => writes.test(part) || calls(part, writing)
      const statements = parts.filter(isWriting).flatMap((part) => /^const (\w+)/.exec(part)?.[1] ?? [])
      const sends = (part: string) => statements.some((name) => new RegExp(`\\b${name}\\b`).test(part))
      return (
        parts
          .filter((part) => /^(?:export )?(?:async )?function/.test(part) && (isWriting(part) || sends(part)))
          // A function that needs its own connection to hold a lock calls `dedicated`.
          .filter((part) => /\b\w+: (?:Queryable|Db)\b/.test(part) && !/\.dedicated\(/.test(part))
          .map((part) => `${path} ${/function (\w+)/.exec(part)?.[1]}`)
      )
    })
  assert.deepEqual(wrong, [])
})

test('fences: an operation that reads for an organization uses connections of its share', () => {
  const wrong = readProduct()
    .filter(({ path }) => /^src\/http\/(?:app\/)?routes\//.test(path))
    .flatMap(({ path, text }) =>
      text
        .split(/^(?=(?:export )?(?:async )?function )/m)
        .filter((part) => /\bapi\.get\(/.test(part) && !/session: '(?:none|person)'/.test(part))
        .filter((part) => /\bdeps\.db\b|\{[^}]*\bdb\b[^}]*\}: (?:Pick<)?(?:HttpDeps|AppDeps)\b/.test(part))
        .map((part) => `${path} ${/function (\w+)/.exec(part)?.[1]}`),
    )
  assert.deepEqual(wrong, [], 'GET reads with `db` of the request')
})

/** It deletes blobs that were never committed, so no snapshot names them. */
const uncommitted = ['src/cli/doctor/blobs.ts']

test('fences: a committed blob is deleted only by the function that checks for a backup under way', () => {
  const wrong = readProduct().filter(
    ({ path, text }) =>
      /\bblobs\.delete\(/i.test(text) && !uncommitted.includes(path) && path !== 'src/flow/delete-blobs.ts',
  )
  assert.deepEqual(
    wrong.map(({ path }) => path),
    [],
    'flow/delete-blobs does it',
  )
})
