// Invented text with the word frequencies of natural text: Zipf's law over a generated vocabulary.

/** Returns numbers from 0 to 1, the same sequence for the same seed. */
export type Random = () => number

/** Mulberry32, by Tommy Ettinger: one multiplication per number, and consecutive seeds give unrelated sequences. */
export function randomOf(seed: number): Random {
  let state = Math.imul(seed + 1, 0x9e3779b1)
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

const vocabularySize = 20_000
const { words, upTo } = makeVocabulary()

/** Writes paragraphs of sentences, about `bytes` long in total (ASCII, one blank line between paragraphs included). */
export function writeParagraphs(random: Random, bytes: number): string[] {
  const paragraphs: string[] = []
  for (let left = bytes; left > 0; ) {
    const wanted = Math.min(left, 200 + Math.floor(400 * random()))
    let text = ''
    while (text.length < wanted) text += `${text ? ' ' : ''}${writeSentence(random)}`
    const paragraph = text.slice(0, Math.max(1, left)).trimEnd()
    paragraphs.push(paragraph)
    left -= paragraph.length + 2
  }
  return paragraphs
}

/** Writes `count` words, the first with a capital. */
export function writeWords(random: Random, count: number): string {
  const text = Array.from({ length: count }, () => wordOf(random)).join(' ')
  return text.charAt(0).toUpperCase() + text.slice(1)
}

function writeSentence(random: Random): string {
  return `${writeWords(random, 4 + Math.floor(16 * random()))}.`
}

/** Picks a word with a probability equal to its frequency. */
function wordOf(random: Random): string {
  const wanted = random() * upTo[vocabularySize - 1]!
  let [low, high] = [0, vocabularySize - 1]
  while (low < high) {
    const middle = (low + high) >> 1
    if (upTo[middle]! < wanted) low = middle + 1
    else high = middle
  }
  return words[low]!
}

/** Makes words of syllables, frequent ones short, and their summed weights (Zipf and Mandelbrot: 1 / (rank + 2.7)). */
function makeVocabulary(): { words: string[]; upTo: Float64Array } {
  const random = randomOf(0)
  const pick = (letters: string) => letters[Math.floor(letters.length * random())]!
  const made = new Set<string>()
  while (made.size < vocabularySize) {
    const longest = 1 + Math.log10(made.size + 1)
    let word = ''
    for (let syllable = 0; syllable <= longest * random(); syllable++)
      word += pick('bcdfghklmnprstvw') + pick('aeiou') + (random() < 0.4 ? pick('lmnrst') : '')
    made.add(word)
  }
  const sums = new Float64Array(vocabularySize)
  for (let rank = 0, sum = 0; rank < vocabularySize; rank++) sums[rank] = sum += 1 / (rank + 2.7)
  return { words: [...made], upTo: sums }
}
