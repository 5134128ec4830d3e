// Checks each list of files in docs/message-life.md: every file has the names, and is reached from an earlier file.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { test } from 'node:test'
import { root } from './source.ts'

interface Stop {
  path: string
  /** The names to read in the file, without the `#`. */
  names: string[]
}

const maxVisits = 3

/** Reads the numbered lists of the section. Each list is a path through the source. */
function readWays(): Stop[][] {
  const page = readFileSync(join(root, 'docs/message-life.md'), 'utf8')
  const section = /^## The files in order$([\s\S]*?)^## /m.exec(page)?.[1] ?? ''
  const ways: Stop[][] = []
  for (const [, number, path, rest] of section.matchAll(/^(\d+)\. `([^`]+)`: (.*)$/gm)) {
    if (number === '1') ways.push([])
    const names = [...rest!.matchAll(/`#?(\w+)`/g)].map(([, name]) => name!)
    ways.at(-1)!.push({ path: path!, names })
  }
  return ways
}

function textOf(path: string): string {
  return readFileSync(join(root, 'src', path), 'utf8')
}

function declares(path: string, name: string): boolean {
  const text = textOf(path)
  if (path.endsWith('.sql')) return text.includes(`create or replace function ${name}(`)
  return new RegExp(
    `^(?:export )?(?:async )?(?:function|class) ${name}\\b|^  (?:async )?#?${name}[<(]`,
    'm',
  ).test(text)
}

/** Reports whether an earlier stop calls something of this one, or starts it as a thread. */
function isReached({ path: own, names }: Stop, before: Stop[]): boolean {
  const texts = before.map(({ path }) => textOf(path))
  const calls = names.map((name) => new RegExp(`\\b${name}\\(`))
  return texts.some(
    (text) => text.includes(`'./${basename(own)}', import.meta`) || calls.some((call) => call.test(text)),
  )
}

test('fences: the steps in docs/message-life.md match the source', () => {
  const ways = readWays()
  assert.equal(ways.length, 3, 'one out, and two in, before and after the spool')
  for (const way of ways) {
    assert.ok(way.length >= 10)
    for (const [index, stop] of way.entries()) {
      assert.ok(stop.names.length > 0, `${stop.path}: says what to read there`)
      for (const name of stop.names) assert.ok(declares(stop.path, name), `${stop.path} has no ${name}`)
      if (index > 0) assert.ok(isReached(stop, way.slice(0, index)), `nothing before ${stop.path} calls it`)
    }
  }
})

test('fences: each path of a message visits a file at most three times', () => {
  for (const way of readWays())
    for (const { path } of way) {
      const visits = way.filter((stop) => stop.path === path).length
      assert.ok(visits <= maxVisits, `${path} is visited ${visits} times`)
    }
})
