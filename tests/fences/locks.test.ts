// Checks that every advisory lock number in a function is in the table of classes, and that no two classes share one.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { lockClasses } from '../../src/postgres/locks.ts'
import { readProduct, readSources } from './source.ts'

const classes = new Set(Object.values(lockClasses))

/** Returns the numbers written in SQL: decimals of nine or ten digits, and hexadecimals. */
function numbersIn(sql: string): number[] {
  const written = sql.replace(/--.*$/gm, '').matchAll(/\b(\d{9,10})\b|\bx'([0-9a-f]+)'/g)
  return [...written].map(([, decimal, hex]) => (decimal ? Number(decimal) : Number.parseInt(hex!, 16)))
}

test('fences: classes of advisory locks differ, and database functions use no others', () => {
  assert.equal(classes.size, Object.keys(lockClasses).length)
  const found = readSources('src/store/functions/*.sql').flatMap(({ path, text }) =>
    numbersIn(text).map((number) => ({ path, number })),
  )
  assert.ok(found.length >= 5, 'the numbers in SQL are written in another way')
  assert.deepEqual(
    found.filter(({ number }) => !classes.has(number)),
    [],
  )
})

test('fences: TypeScript takes advisory locks by the table, or by a name', () => {
  const wrong = readProduct().filter(({ text }) => /advisory\w*\(\s*(?:\d|0x)/.test(text))
  assert.deepEqual(
    wrong.map(({ path }) => path),
    [],
  )
})
