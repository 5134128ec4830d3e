// Checks that every protocol rule names its RFC in one form, and that docs/rfc.tsv says how far each RFC is followed.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { readProduct, root } from './source.ts'

interface Row {
  rfc: string
  title: string
  status: string
}

const comments = readProduct().flatMap(({ path, text }) =>
  text.split('\n').flatMap((line, index) => {
    const comment = /(?:^|\s)(\/\/ RFC\b.*)$/.exec(line)?.[1]
    return comment ? [{ at: `${path}:${index + 1}`, comment }] : []
  }),
)
const form = /^\/\/ RFC (\d{3,5}) (?:[A-Z]|\d+)(?:\.\d+)*: \S/
const cited = new Map(
  comments.flatMap(({ at, comment }) => (form.test(comment) ? [[form.exec(comment)![1]!, at]] : [])),
)

function readRows(): Row[] {
  const [head, ...lines] = readFileSync(join(root, 'docs/rfc.tsv'), 'utf8').trimEnd().split('\n')
  assert.equal(head, 'RFC\tTitle\tFollowed')
  return lines.map((line) => {
    const [rfc = '', title = '', status = ''] = line.split('\t')
    return { rfc, title, status }
  })
}

test('fences: RFC comments have the form `// RFC 5321 4.5.3.1.3: …`', () => {
  const wrong = comments.filter(({ comment }) => !form.test(comment))
  assert.deepEqual(wrong, [], 'write number, one section, a colon and the rule')
})

test('fences: docs/rfc.tsv is a sorted table of number, title and yes, partly or no', () => {
  const rows = readRows()
  for (const row of rows) assert.match(`${row.rfc} ${row.title} ${row.status}`, /^\d+ \S.* (yes|partly|no)$/)
  const numbers = rows.map(({ rfc }) => Number(rfc))
  assert.deepEqual(
    numbers,
    [...new Set(numbers)].sort((a, b) => a - b),
  )
})

test('fences: docs/rfc.tsv has every RFC that code cites', () => {
  const known = new Map(readRows().map(({ rfc, status }) => [rfc, status]))
  const missing = [...cited].filter(([rfc]) => (known.get(rfc) ?? 'no') === 'no')
  const wanted = missing.map(([rfc, at]) => `${rfc}\t<title>\t<yes or partly>   (cited in ${at})`)
  assert.deepEqual(wanted, [], 'add these rows to docs/rfc.tsv')
})

test('fences: code cites every RFC that docs/rfc.tsv calls followed', () => {
  const uncited = readRows().filter(({ rfc, status }) => status !== 'no' && !cited.has(rfc))
  const wanted = uncited.map(({ rfc, title }) => `RFC ${rfc} ${title}`)
  assert.deepEqual(wanted, [], 'cite these at the branch that follows them, or say `no`')
})
