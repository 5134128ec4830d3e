// Finds a member that occurs twice in one object of a JSON text. RFC 8259 4: parsers differ in which one they take.

/**
 * Returns the JSON pointer of the first repeated member, up to four names long, or null. `text` must be the valid JSON of
 * `value`. Linear: without a repeated member it costs one search for quotes and one walk through the values.
 */
export function findRepeatedMember(value: unknown, text: string): string | null {
  return countNames(text) === countMembers(value) ? null : locateRepeated(text)
}

/** Counts the member names in the text. */
function countNames(text: string): number {
  let names = 0
  for (let at = text.indexOf('"'); at >= 0; at = text.indexOf('"', at)) {
    at = endOfText(text, at)
    if (isName(text, at)) names++
  }
  return names
}

/** Counts the members of all objects in the value. Not recursive, because the value may be nested 20,000 deep. */
function countMembers(value: unknown): number {
  const waiting = [value]
  let members = 0
  while (waiting.length > 0) {
    const one = waiting.pop()
    if (typeof one !== 'object' || one === null) continue
    const inner = Object.values(one)
    if (!Array.isArray(one)) members += inner.length
    for (const member of inner) if (typeof member === 'object') waiting.push(member)
  }
  return members
}

/** An open object or list, with the name or index of the value that is being read in it. */
interface Open {
  names: Set<string> | null
  at: string | number
}

const marks = /["[\]{},]/g

function locateRepeated(text: string): string | null {
  const open: Open[] = []
  marks.lastIndex = 0
  for (let mark = marks.exec(text); mark; mark = marks.exec(text)) {
    const innermost = open.at(-1)
    if (mark[0] === '{') open.push({ names: new Set(), at: '' })
    else if (mark[0] === '[') open.push({ names: null, at: 0 })
    else if (mark[0] === '}' || mark[0] === ']') open.pop()
    else if (mark[0] === ',') {
      if (typeof innermost?.at === 'number') innermost.at++
    } else {
      const end = endOfText(text, mark.index)
      marks.lastIndex = end
      if (!innermost?.names || !isName(text, end)) continue
      const name = JSON.parse(text.slice(mark.index, end)) as string
      innermost.at = name
      if (innermost.names.has(name)) return pointerTo(open)
      innermost.names.add(name)
    }
  }
  return null
}

function pointerTo(open: readonly Open[]): string {
  return open
    .slice(0, 4)
    .map(({ at }) => `/${String(at).slice(0, 50)}`)
    .join('')
}

const [backslash, space, colon] = [0x5c, 0x20, 0x3a]

/** Returns the index after the text that begins at this quote. */
function endOfText(text: string, start: number): number {
  for (let at = text.indexOf('"', start + 1); ; at = text.indexOf('"', at + 1)) {
    let escapes = 0
    while (text.charCodeAt(at - 1 - escapes) === backslash) escapes++
    if (escapes % 2 === 0) return at + 1
  }
}

/** Whether the text that ends here is a member's name. */
function isName(text: string, end: number): boolean {
  let at = end
  while (text.charCodeAt(at) <= space) at++
  return text.charCodeAt(at) === colon
}
