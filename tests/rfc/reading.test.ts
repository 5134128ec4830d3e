// Compares our reading of every field of every published mail with three others; docs/reading.md explains the differences.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { type CorpusMail, readCorpora } from '../support/corpora.ts'
import { type Field, fields, openReaders, type Reader, type Reading } from '../support/readings.ts'

const corpora = readCorpora()
const isEmpty = [...corpora.values()].every((mails) => mails.length === 0)
const skip = isEmpty ? 'the published suites are absent (POSTHORN_TESTDATA)' : false

interface Tally {
  compared: number
  /** Fields in which at least two of the others agree with ours. */
  asMost: number
  /** Fields in which no two of the others agree against ours, and at least one agrees with ours. */
  asOne: number
  differing: Difference[]
}

interface Difference {
  /** The mail and the field. */
  name: string
  ours: string | undefined
  theirs: string
}

/** Fields with one value per part. They are compared only if the readers found the same number of parts. */
const ofAttachments = new Set<Field>(['filename', 'type', 'size', 'sha256', 'disposition', 'contentId'])

test('check 61: our reader agrees with others, or docs/reading.md explains the difference', {
  skip,
}, async (t) => {
  const readers = openReaders()
  t.after(() => {
    for (const reader of readers) reader.close()
  })
  const explained = readExplanations()
  const tallies = new Map<string, Tally>()
  for (const [suite, mails] of corpora) tallies.set(suite, await compareAll(mails, readers))
  for (const row of tableOf(tallies)) t.diagnostic(row)
  const differing = [...tallies.values()].flatMap((tally) => tally.differing)
  const unexplained = differing.filter(({ name }) => !explained.has(name))
  assert.deepEqual(unexplained, [], 'docs/reading.md does not explain these')
  const found = new Set(differing.map(({ name }) => name))
  // With fewer readers or suites, fewer fields differ, so an explained difference may be absent.
  if (readers.length < 4 || [...corpora.values()].some((mails) => mails.length === 0)) return
  const gone = [...explained].filter((name) => !found.has(name))
  assert.deepEqual(gone, [], 'docs/reading.md explains what does not differ any more')
})

test('docs/reading.md: each class of differences names an RFC and has an example', () => {
  for (const section of classesOf(readPage())) {
    const title = section.split('\n')[0]
    assert.match(section, /RFC \d{4,5} \d/, `${title}: no RFC and section`)
    assert.match(section, /\nFor example/, `${title}: no example`)
  }
})

async function compareAll(mails: CorpusMail[], readers: Reader[]): Promise<Tally> {
  const tally: Tally = { compared: 0, asMost: 0, asOne: 0, differing: [] }
  for (const { name, raw } of mails) {
    const [ours, ...theirs] = await Promise.all(readers.map((reader) => reader.read(raw)))
    for (const field of fields) countField(tally, `${name} ${field}`, field, { ours: ours!, theirs })
  }
  return tally
}

function countField(
  tally: Tally,
  name: string,
  field: Field,
  { ours, theirs }: { ours: Reading; theirs: Reading[] },
): void {
  const others = theirs
    .filter((reading) => !ofAttachments.has(field) || reading.attachments === ours.attachments)
    .flatMap((reading) => reading[field] ?? [])
  if (others.length < 2 || [ours[field], ...others].every(isNothing)) return
  tally.compared++
  const agreeing = others.filter((value) => value === ours[field]).length
  const rest = others.filter((value) => value !== ours[field])
  const isOutvoted = new Set(rest).size < rest.length
  if (agreeing >= 2) tally.asMost++
  else if (agreeing === 1 && !isOutvoted) tally.asOne++
  else tally.differing.push({ name, ours: ours[field], theirs: others.join(' | ').slice(0, 1000) })
}

/** Agreement that there is no address, text or attachment proves little. */
const isNothing = (value: string | undefined) => ['', '[]', '0', undefined].includes(value)

function tableOf(tallies: Map<string, Tally>): string[] {
  const row = (...cells: (string | number)[]) =>
    cells.map((cell, at) => (at === 0 ? String(cell).padEnd(23) : String(cell).padStart(12))).join('')
  const rows = [...tallies].map(([suite, { compared, asMost, asOne, differing }]) =>
    row(suite, corpora.get(suite)!.length, compared, asMost, asOne, differing.length),
  )
  const sum = (of: (tally: Tally) => number) =>
    [...tallies.values()].reduce((sum, tally) => sum + of(tally), 0)
  const mails = [...corpora.values()].flat().length
  return [
    row('corpus', 'mails', 'fields', 'as most', 'as one', 'explained'),
    ...rows,
    row(
      'in all',
      mails,
      sum(({ compared }) => compared),
      sum(({ asMost }) => asMost),
      sum(({ asOne }) => asOne),
      sum(({ differing }) => differing.length),
    ),
  ]
}

function readPage(): string {
  return readFileSync(new URL('../../docs/reading.md', import.meta.url), 'utf8')
}

/** Returns the sections that explain differences. Each has a table of mails and fields. */
function classesOf(page: string): string[] {
  return page.split(/^### /m).slice(1)
}

/** Returns `mail field` for each row of the page's tables. Throws if a difference is explained twice. */
function readExplanations(): Set<string> {
  const rows = [...readPage().matchAll(/^\| `([^`]+)` \| ([A-Za-z0-9, ]+) \|$/gm)]
  const names = rows.flatMap(([, mail, list]) => list!.split(', ').map((field) => `${mail} ${field}`))
  assert.equal(new Set(names).size, names.length, 'a difference is explained twice')
  return new Set(names)
}
