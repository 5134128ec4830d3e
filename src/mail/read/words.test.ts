// Tests that texts and queries split into the same words, in any language, within limits and in linear time.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { inCpuTime } from '../../../tests/support/cpu-time.ts'
import { readQuery, writeVector } from './words.ts'

type Words = Map<string, number[]>

/** Parses a vector as PostgreSQL does. */
function readVector(vector: string): Words {
  const entries = vector.matchAll(/'p_([^']*)'(?::([\d,]+))?/g)
  return new Map([...entries].map(([, word, places]) => [word!, places?.split(',').map(Number) ?? []]))
}

const vectorOf = (...fields: string[]) => readVector(writeVector({ fields, prefix: 'p_' }))

/** Whether the query matches the words, as `@@` does. */
function finds(query: string, words: Words): boolean {
  const phrases = readQuery(query)
  return phrases.length > 0 && phrases.every((phrase) => hasPhrase(phrase, words))
}

function hasPhrase(phrase: ReturnType<typeof readQuery>[number], words: Words): boolean {
  const placesOf = ({ word, isPrefix }: (typeof phrase)[number]) =>
    isPrefix
      ? [...words].flatMap(([known, places]) => (known.startsWith(word) ? [places] : [])).flat()
      : words.get(word)
  if (phrase.length === 1) {
    const [{ word, isPrefix }] = phrase as [(typeof phrase)[number]]
    return isPrefix ? [...words.keys()].some((known) => known.startsWith(word)) : words.has(word)
  }
  let ends = new Set(placesOf(phrase[0]!))
  for (const term of phrase.slice(1))
    ends = new Set(placesOf(term)?.filter((span) => ends.has(span - term.distance)))
  return ends.size > 0
}

const vectors: [text: string, words: string[]][] = [
  ['Grüße, STRASSE; straße ẞ', ['grusse', 'strasse', 'ss']],
  ['Ἀθῆναι ΟΔΟΣ ὁδός', ['αθηναι', 'οδοσ']],
  ['don’t e-mail a.b@c.test', ['don', 't', 'e', 'mail', 'a', 'b', 'c', 'test']],
  ['Ａｂｃ ﬁne ①', ['abc', 'fine', '1']],
  ['auto\u00adbahn zero\u200bwidth', ['autobahn', 'zerowidth']],
  ['東京x', ['東京', '京', 'x']],
  ['ｶﾞｲﾄﾞ', ['ガイ', 'イド', 'ド']],
  ['한국 한국', ['한국', '국']],
  ['🎉 — «» …', []],
  ['𝒳𝒴 𠀋𠀌', ['xy', '𠀋𠀌', '𠀌']],
  ['\ud800 a\udc00b', ['a', 'b']],
]

for (const [text, words] of vectors)
  test(`words are found in ${JSON.stringify(text)}`, () =>
    assert.deepEqual([...vectorOf(text).keys()], words))

test('no phrase spans two fields', () => {
  const words = vectorOf('one two', 'three', '東', '京')
  assert.ok(finds('"one two"', words) && finds('one three', words) && finds('東 京', words))
  assert.ok(!finds('"two three"', words) && !finds('東京', words))
})

test('a query yields phrases and prefixes, or is refused', () => {
  const term = (word: string, distance = 0, isPrefix = false) => ({ word, distance, isPrefix })
  const queries: [query: string, phrases: ReturnType<typeof readQuery>][] = [
    ['a  B', [[term('a')], [term('b')]]],
    ['"a b" c', [[term('a'), term('b', 1)], [term('c')]]],
    ['„a b“ “c', [[term('a'), term('b', 1)], [term('c')]]],
    ['a@b.c', [[term('a'), term('b', 1), term('c', 1)]]],
    ['ab* a*b *', [[term('ab', 0, true)], [term('a'), term('b', 1)]]],
    ['"a b*"', [[term('a'), term('b', 1, true)]]],
    ['東', [[term('東', 0, true)]]],
    ['東京x', [[term('東京'), term('x', 2)]]],
    ['x東', [[term('x'), term('東', 1, true)]]],
    ['"" 🎉 - *', []],
  ]
  for (const [query, phrases] of queries) assert.deepEqual(readQuery(query), phrases, query)
})

const alphabets = [
  'aäÄßſİıςΣ',
  'ёйЖ',
  'אָשׁ',
  'سَأآ',
  'हिन्क्ष',
  '東京タワーｶﾞ々',
  '한국ᄒ',
  'ไทยน้ำ',
  'ខ្មែរ',
  ' .,-@"*_’\u00ad\u200b',
  '\u0301\u0345\u3099',
  '019½²',
  '🎉👩‍👧𝒳𠀋',
]
const letter = fc.oneof(
  fc.constantFrom(...alphabets.flatMap((letters) => [...letters])),
  fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
)
const text = fc.array(letter, { maxLength: 60 }).map((letters) => letters.join(''))

test('property: every word of a text finds it, and so does any text between two spaces', () => {
  fc.assert(
    fc.property(text, (text) => {
      const words = vectorOf('subject', text)
      for (const word of words.keys())
        assert.ok(finds(word, words), `${JSON.stringify(word)} in ${JSON.stringify(text)}`)
      for (const part of text.split(/\s+/))
        if (readQuery(part).length > 0)
          assert.ok(finds(part, words), `${JSON.stringify(part)} in ${JSON.stringify(text)}`)
    }),
    { numRuns: 3_000 },
  )
})

test('property: in a script without spaces every substring is found', () => {
  const run = fc.string({
    unit: fc.constantFrom(...'東京都の天気は晴れタワーー々'),
    minLength: 1,
    maxLength: 40,
  })
  fc.assert(
    fc.property(run, fc.nat(), fc.integer({ min: 1, max: 10 }), (run, start, length) => {
      const from = start % run.length
      assert.ok(finds(run.slice(from, from + length), vectorOf(`x ${run}。`)))
    }),
    { numRuns: 1_000 },
  )
})

test('an overlong word is found whole and by its beginning, and not by another word', () => {
  const long = '𝒳abc'.repeat(60)
  const words = vectorOf(`see ${long} there`)
  assert.ok(finds(long, words) && finds(`${long.slice(0, 200)}*`, words) && finds(`see ${long}`, words))
  assert.ok(!finds(`${long}x`, words) && !finds(long.slice(0, -1), words))
})

test('a phrase is found anywhere in a long text, although positions restart', () => {
  const text = Array.from(
    { length: 50_000 },
    (_, n) => `w${n % 15_000}${n === 40_000 ? ' needle in hay' : ''}`,
  ).join(' ')
  const words = vectorOf(text)
  for (const query of ['"needle in hay"', '"w0 w1"', '"w998 w999 w1000 w1001 w1002"', '"w14999 w0"'])
    assert.ok(finds(query, words), query)
  assert.ok([...words.values()].flat().every((span) => span > 0 && span < 16_384))
})

test('any mail’s words fit a tsvector', () => {
  for (const text of [
    Array.from({ length: 400_000 }, (_, n) => `${n.toString(36)}${'漢'.repeat(n % 40)}`).join(' '),
    Array.from({ length: 400_000 }, (_, n) => String.fromCodePoint(0x20000 + (n % 40_000))).join(''),
    'a b '.repeat(300_000),
  ]) {
    const vector = writeVector({ fields: [text], prefix: 'ffffffff_' })
    const words = [...vector.matchAll(/'([^']*)'(:[\d,]*)?/g)]
    const bytes = words.map(
      ([, word, places]) => Buffer.byteLength(word!) + 3 + 2 * (places?.split(',').length ?? 0),
    )
    assert.ok(bytes.reduce((sum, size) => sum + size, 0) < 2 ** 20 - 2 ** 16)
    assert.ok(words.every(([, word]) => Buffer.byteLength(word!) < 2_046))
  }
})

test('check 60: splitting into words takes linear time', () => {
  const hostile: Record<string, string> = {
    letters: 'a',
    spaces: ' ',
    marks: '\u0323\u0301',
    'marks of half-width letters': 'ﾞ\u0301ﾟ',
    han: '漢',
    'ligatures of phrases': '\ufdfa',
    quotes: '"',
    stars: 'a*',
    'lone surrogates': '\ud800',
    hangul: '\u1112\u1161\u11ab',
    capitals: 'ΣS',
    pairs: '𝒳 ',
    conjuncts: 'क्षि',
  }
  for (const [name, unit] of Object.entries(hostile)) {
    const text = unit.repeat(Math.ceil(25_000_000 / unit.length))
    const read = () => {
      writeVector({ fields: [text, text], prefix: 'p_' })
      readQuery(text.slice(0, 200_000))
    }
    inCpuTime(5_000, read, name)
  }
})
