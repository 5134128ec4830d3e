// Prose is read once, at speed: comments, docs and test names open with their subject and use the field's words.
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { test } from 'node:test'
import { readComments, readDocs, readTestNames, type Sentence } from './prose.ts'
import { root } from './source.ts'

/** Rule 2 of CONTRIBUTING, "Prose": each of these hides a noun. */
const opening = /^[*_"'(]*(?:What|Who|Whoever|Whose|Of|Where|That which)\b/
const longestSentence = 35
/** Rule 8. Words that the field uses as well, such as line, place, turn and look, are left to readers. */
const ownWord =
  /\b(?:stands?|stood|told|tells?|beside|at hand|heeds?|heeded|deeds?|nobody's|whoever|so many|is to be|are to be)\b/gi

/** A name may begin with an area or a number, as in `smtp: …` and `check 49: …`. */
const nameOpening = /(?:^|: )(?:what|who|whoever|whose|whom|where|of|that which)\b/i
/** Stricter than for comments: a name is read alone, in a list of results. */
const nameWord =
  /\b(?:told|tells?|behind|beside|turns?|lanes?|stands?|stood|whoever|for good|put off|is to be|are to be)\b/i

/** These numbers only go down. Names of files and settings count as well, so not all of them reach 0. */
const limits = {
  comments: { openings: 0, long: 2, ownWords: 5 },
  docs: { openings: 0, long: 0, ownWords: 3 },
}

function measure(sentences: Sentence[]) {
  const words = (text: string) => text.split(' ').filter((word) => /\w/.test(word)).length
  return {
    openings: sentences.filter(({ text }) => opening.test(text)),
    long: sentences.filter(({ text }) => words(text) > longestSentence),
    ownWords: sentences.flatMap((sentence) =>
      [...sentence.text.matchAll(ownWord)].map(([word]) => ({ ...sentence, text: word })),
    ),
  }
}

for (const [name, sentences] of [
  ['comments', readComments()],
  ['docs', readDocs()],
] as const)
  test(`fences: ${name} open with their subject, in short sentences and the field’s words`, (t) => {
    t.diagnostic(`${sentences.length} sentences`)
    for (const [kind, found] of Object.entries(measure(sentences))) {
      const limit = limits[name][kind as keyof (typeof limits)[typeof name]]
      t.diagnostic(`${kind}: ${found.length} of at most ${limit}`)
      const places = found.map(({ at, text }) => `${at} ${text.slice(0, 90)}`)
      assert.ok(found.length <= limit, `${kind}: ${found.length}, at most ${limit}:\n${places.join('\n')}`)
    }
  })

test('fences: a decision states itself in its title, and what and why in up to three sentences', () => {
  const sentences = readDocs()
  for (const path of globSync('decisions/*.md', { cwd: root })) {
    const [title, empty] = readFileSync(join(root, path), 'utf8').split('\n')
    assert.match(title!, new RegExp(`^# ${basename(path).slice(0, 4)}: [A-Z0-9\`]`), path)
    assert.equal(empty, '', path)
    const opening = sentences.filter(({ at }) => at === `${path}:3`)
    assert.ok(opening.length > 0 && opening.length <= 3, `${path}: ${opening.length} sentences`)
  }
})

test('fences: test names open with their subject, in the field’s words', (t) => {
  const names = readTestNames()
  t.diagnostic(`${names.length} names`)
  const found = names.filter(({ text }) => nameOpening.test(text) || nameWord.test(text))
  assert.deepEqual(
    found.map(({ at, text }) => `${at} ${text}`),
    [],
  )
})
