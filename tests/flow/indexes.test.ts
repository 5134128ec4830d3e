// Each index has a query that needs it: docs/indexes.md names exactly the existing ones. Also on PostgreSQL 15.
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { Db } from '../../src/postgres/db.ts'
import { testDatabase } from '../support/postgres.ts'

const root = new URL('../../', import.meta.url)

/** The files of each index, according to the page. */
function readPage(): Map<string, string[]> {
  const lines = readFileSync(new URL('docs/indexes.md', root), 'utf8').split('\n')
  const rows = lines.flatMap((line) => {
    const [, name, reason] = /^\| `(\w+)` \| (.+) \|$/.exec(line) ?? []
    return name && reason
      ? [[name, [...reason.matchAll(/`([\w/-]+\.(?:ts|sql))`/g)].map(([, path]) => path!)] as const]
      : []
  })
  assert.equal(new Set(rows.map(([name]) => name)).size, rows.length, 'an index stands there twice')
  return new Map(rows)
}

/** The names by which files refer to a table's rows: jobs read three tables through a view. */
function namesOf(table: string): RegExp {
  const view = ['spool', 'kept_mail', 'scan'].includes(table) ? '|work' : ''
  return new RegExp(`\\b(${table}${view})\\b`)
}

test('the page names a query for each index, and no index that does not exist', async (t) => {
  const db = new Db({ connection: await testDatabase(t), maxConnections: 1 })
  t.after(() => db.close())
  const page = readPage()
  const indexes = await db.query<{ name: string; table: string }>(
    `select indexname as name, tablename as table from pg_indexes where schemaname = 'public' order by 1`,
  )
  assert.deepEqual([...page.keys()].sort(), indexes.map(({ name }) => name).sort())
  for (const { name, table } of indexes) {
    const files = page.get(name)!
    assert.notEqual(files.length, 0, `${name} is needed by no file`)
    for (const path of files) {
      const file = new URL(`src/${path}`, root)
      assert.ok(existsSync(file), `${name} is needed by ${path}, which is not there`)
      assert.match(readFileSync(file, 'utf8'), namesOf(table), `${path} does not ask for ${table}`)
    }
  }
})
