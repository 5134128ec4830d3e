// Reads Authentication-Results, and the copy that ARC keeps: the reporting server and its result per method (RFC 8601 2.2).

export interface ReportedResult {
  /** In lower case, as `dkim`. */
  method: string
  /** In lower case, as `pass`. May be a result that no RFC defines. */
  result: string
  /** By their names in lower case, as `header.d`. The first of each name counts. */
  properties: ReadonlyMap<string, string>
}

export interface AuthResults {
  /** The reporting server, in lower case. */
  authservId: string
  results: ReportedResult[]
}

const maxLength = 16 * 1024
const maxResults = 100
const maxProperties = 20

/**
 * Parses the value of a field as received. Null if it is malformed. Reads up to 16 KiB and 100 results. Ignores comments
 * and unreadable results. Takes linear time.
 */
export function parseAuthResults(value: string): AuthResults | null {
  if (value.length > maxLength) return null
  const [first, ...parts] = splitParts(value)
  // RFC 8601 2.2: the reporting server comes first, optionally followed by a version.
  const authservId = first?.[0]?.text ?? ''
  if (!/^[^=]+$/.test(authservId)) return null
  const results = parts.slice(0, maxResults).flatMap((tokens) => readResult(tokens) ?? [])
  return { authservId: authservId.toLowerCase(), results }
}

interface Token {
  /** The text of a word, without quotes. */
  text: string
  /** `;`, `=`, `.` or `/` between words. Empty for a word. */
  sign: string
}

// RFC 8601 2.2: method, an optional version, result, then a reason and properties, each as name=value.
function readResult(tokens: readonly Token[]): ReportedResult | null {
  const pairs = readPairs(tokens)
  const [method, ...rest] = pairs
  if (method === undefined) return null
  const properties = new Map<string, string>()
  for (const { name, value } of rest) {
    if (properties.size < maxProperties && !properties.has(name)) properties.set(name, value)
  }
  return { method: method.name.replace(/\/.*$/s, ''), result: method.value.toLowerCase(), properties }
}

/** Every `name = value` of one part. Names are joined from words and dots. Words without a value are ignored. */
function readPairs(tokens: readonly Token[]): { name: string; value: string }[] {
  const pairs: { name: string; value: string }[] = []
  let name = ''
  let isJoined = false
  for (let index = 0; index < tokens.length; index++) {
    const { text, sign } = tokens[index]!
    if (sign === '=') {
      const value = tokens[index + 1]
      if (name !== '' && value?.sign === '') {
        pairs.push({ name: name.toLowerCase(), value: value.text })
        index++
      }
      name = ''
      isJoined = false
    } else if (sign !== '') {
      name += sign
      isJoined = true
    } else {
      name = isJoined ? name + text : text
      isJoined = false
    }
  }
  return pairs
}

/** The tokens between semicolons. Stops after the maximum number of parts. */
function splitParts(value: string): Token[][] {
  const scanner = new Scanner(value)
  const parts: Token[][] = [[]]
  for (let token = scanner.next(); token !== null; token = scanner.next()) {
    if (token.sign !== ';') parts.at(-1)!.push(token)
    else if (parts.push([]) > maxResults + 1) break
  }
  return parts
}

const whiteSpace = ' \t\r\n'
const endsName = ' \t\r\n();=./'
/** Values contain addresses, base64 and other text. Only these characters end them. */
const endsValue = ' \t\r\n();'

class Scanner {
  readonly #text: string
  #at = 0
  /** Whether the next word is a value or the very first word. Such words contain dots and slashes. */
  #isValue = true

  constructor(text: string) {
    this.#text = text
  }

  next(): Token | null {
    this.#skipComments()
    const sign = this.#text[this.#at]
    if (sign === undefined) return null
    if (sign === ';' || sign === '=' || (!this.#isValue && (sign === '.' || sign === '/'))) {
      this.#at++
      this.#isValue = sign === '='
      return { text: sign, sign }
    }
    const text = this.#readWord(this.#isValue ? endsValue : endsName)
    this.#isValue = false
    return { text, sign: '' }
  }

  // RFC 5322 3.2.2: comments nest, and may occur wherever white space may.
  #skipComments(): void {
    let depth = 0
    for (; this.#at < this.#text.length; this.#at++) {
      const sign = this.#text[this.#at]!
      if (sign === '(') depth++
      else if (sign === ')') depth = Math.max(0, depth - 1)
      else if (depth > 0 && sign === '\\') this.#at++
      else if (depth === 0 && !whiteSpace.includes(sign)) return
    }
  }

  /** Reads up to a sign that ends the word. Removes the quotes of quoted strings in it (a local part, or all of it). */
  #readWord(ends: string): string {
    let word = ''
    for (; this.#at < this.#text.length; this.#at++) {
      const sign = this.#text[this.#at]!
      if (sign === '"') word += this.#readQuoted()
      else if (ends.includes(sign)) break
      else word += sign
    }
    return word
  }

  /** Stops at the closing quote. */
  #readQuoted(): string {
    let quoted = ''
    for (this.#at++; this.#at < this.#text.length && this.#text[this.#at] !== '"'; this.#at++) {
      if (this.#text[this.#at] === '\\') this.#at++
      quoted += this.#text[this.#at] ?? ''
    }
    return quoted
  }
}
