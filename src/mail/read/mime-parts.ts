// Splits a message into a tree of body parts (RFC 2045, 2046) in one linear, bounded pass.
import { ByteRange, type Bytes } from './bytes.ts'
import { type ContentField, parseContentField } from './content-field.ts'
import { bytesOf, type HeaderScan, scanHeader } from './header-scan.ts'

const maxParts = 2000
const deepestNesting = 50
const maxBoundary = 250
/** Up to this many bytes of white space may follow a last boundary that is not on its own line. */
const maxTail = 64 * 1024

const hyphen = 0x2d
const lineBreakAndHyphens = Buffer.from('\n--')

export interface MimePart {
  header: HeaderScan
  /** `text/plain` … in lower case, as the part declares it, or the default of RFC 2045 5.2 and RFC 2046 5.1.5. */
  contentType: string
  typeParameters: Map<string, string>
  disposition: ContentField
  /** The body, still transfer-encoded. Empty for a part that has parts. */
  body: ByteRange
  /** The message ended before a boundary ended this part. For a multipart: no boundary came at all. */
  isUnterminated: boolean
  parts: MimePart[]
}

interface OpenMultipart {
  part: MimePart
  openLine: string
  closeLine: string
  /** The meaning of the same lines outside this multipart. */
  outer: (Delimiter | undefined)[]
}

interface Delimiter {
  /** Number of open multiparts around the parts that it delimits. */
  depth: number
  isClose: boolean
}

/**
 * Splits `raw` into its parts. A nested message (message/rfc822) is one part and is not split. A multipart whose
 * boundary never comes is read as plain text. `isTruncated`: there are more than 2,000 parts, nesting deeper than 50,
 * or headers beyond their limits. The excess is not split.
 */
export function splitMime(raw: Uint8Array | Bytes): { root: MimePart; isTruncated: boolean } {
  const splitter = new Splitter(bytesOf(raw))
  const root = splitter.split()
  return { root, isTruncated: splitter.isTruncated }
}

class Splitter {
  isTruncated = false
  readonly #raw: Bytes
  readonly #open: OpenMultipart[] = []
  readonly #delimiters = new Map<string, Delimiter>()
  /** First bytes of all boundaries so far. They rule out most lines that begin with two hyphens. */
  readonly #firstBytes = new Set<number | undefined>()
  /** The part whose body is being read, or null in a preamble or an epilogue. */
  #leaf: MimePart | null = null
  #partStart = 0
  #bodyStart = 0
  #partCount = 0

  constructor(raw: Bytes) {
    this.#raw = raw
  }

  split(): MimePart {
    const root = this.#startPart(0, 'text/plain')
    let from = Math.max(root.header.headerEnd - 1, 0)
    while (this.#open.length > 0) {
      const lineStart = this.#nextDashes(from)
      if (lineStart < 0) break
      const lineEnd = this.#lineEnd(lineStart)
      const isCandidate = this.#firstBytes.has(this.#raw.at(lineStart + 2))
      const delimiter = isCandidate ? this.#findDelimiter(lineStart, lineEnd) : undefined
      from = lineEnd
      if (delimiter === undefined) continue
      this.#endBody(lineStart)
      this.#leaf = null
      if (!delimiter.isClose) this.#open[delimiter.depth - 1]!.part.isUnterminated = false
      this.#closeTo(delimiter.isClose ? delimiter.depth - 1 : delimiter.depth)
      if (delimiter.isClose || lineEnd + 1 >= this.#raw.length) continue
      if (this.#partCount >= maxParts) {
        this.isTruncated = true
        break
      }
      from = Math.max(lineEnd, this.#startChild(lineEnd + 1) - 1)
    }
    this.#endOfMessage()
    return root
  }

  #endOfMessage(): void {
    const part = this.#leaf
    this.#endBody(this.#raw.length)
    const innermost = this.#open.at(-1)
    if (part === null || innermost === undefined) return
    // QUIRK: some programs write the last boundary without the line break before it (mime-stalwart, thirdparty/005).
    const { start, length } = part.body
    const tailAt = Math.max(start, start + length - maxTail)
    const tail = this.#raw.toString('latin1', tailAt, start + length).trimEnd()
    if (tail.endsWith(innermost.closeLine))
      part.body = new ByteRange(this.#raw, start, tailAt + tail.length - innermost.closeLine.length)
    else part.isUnterminated = true
  }

  /** The start of the next line that begins with two hyphens, or -1. */
  #nextDashes(from: number): number {
    if (from === 0 && this.#raw.at(0) === hyphen && this.#raw.at(1) === hyphen) return 0
    const found = this.#raw.indexOf(lineBreakAndHyphens, from)
    return found < 0 ? -1 : found + 1
  }

  #findDelimiter(start: number, end: number): Delimiter | undefined {
    const line = this.#shortLine(start, end)
    const innermost = this.#open.at(-1)!
    // RFC 2046 5.1.1: a line that begins with the boundary is a delimiter, whatever follows. The innermost comes first.
    if (!line.startsWith(innermost.openLine)) return this.#delimiters.get(line)
    return { depth: this.#open.length, isClose: line.startsWith(innermost.closeLine) }
  }

  /** The line in the form of the keys of `#delimiters`. Empty if it is too long to be a delimiter. */
  #shortLine(start: number, end: number): string {
    if (end - start > maxBoundary + 100) return ''
    return this.#raw.toString('latin1', start, end).trimEnd()
  }

  #lineEnd(start: number): number {
    const found = this.#raw.indexOf(0x0a, start)
    return found < 0 ? this.#raw.length : found
  }

  #startChild(start: number): number {
    const parent = this.#open.at(-1)!.part
    // RFC 2046 5.1.5: in a digest the default type is message/rfc822.
    const defaultType = parent.contentType === 'multipart/digest' ? 'message/rfc822' : 'text/plain'
    const child = this.#startPart(start, defaultType)
    parent.parts.push(child)
    return child.header.headerEnd
  }

  #startPart(start: number, defaultType: string): MimePart {
    const header = scanHeader(this.#raw, start, (lineStart, lineEnd) => this.#isDelimiter(lineStart, lineEnd))
    if (header.isTruncated) this.isTruncated = true
    this.#partCount++
    const type = parseContentField(header.first('content-type') ?? '')
    const contentType = /^[^/]+\/[^/]+$/.test(type.value) ? type.value : defaultType
    const part: MimePart = {
      header,
      contentType,
      typeParameters: type.parameters,
      disposition: parseContentField(header.first('content-disposition') ?? ''),
      body: new ByteRange(this.#raw, 0, 0),
      isUnterminated: false,
      parts: [],
    }
    this.#leaf = part
    this.#partStart = start
    this.#bodyStart = header.headerEnd
    if (contentType.startsWith('multipart/')) {
      part.isUnterminated = true
      this.#openMultipart(part, type.parameters.get('boundary') ?? '')
    }
    return part
  }

  /** QUIRK: a part's header may run into the next boundary without an empty line (mime-stalwart, malformed/007). */
  #isDelimiter(lineStart: number, lineEnd: number): boolean {
    if (this.#raw.at(lineStart) !== hyphen || this.#raw.at(lineStart + 1) !== hyphen) return false
    return this.#delimiters.has(this.#shortLine(lineStart, lineEnd))
  }

  #openMultipart(part: MimePart, boundary: string): void {
    const bytes = Buffer.from(boundary.trimEnd()).toString('latin1')
    if (bytes === '' || bytes.length > maxBoundary) return
    if (this.#open.length >= deepestNesting) {
      this.isTruncated = true
      return
    }
    const openLine = `--${bytes}`
    const closeLine = `${openLine}--`
    this.#firstBytes.add(bytes.charCodeAt(0))
    const outer = [this.#delimiters.get(openLine), this.#delimiters.get(closeLine)]
    this.#open.push({ part, openLine, closeLine, outer })
    this.#delimiters.set(openLine, { depth: this.#open.length, isClose: false })
    this.#delimiters.set(closeLine, { depth: this.#open.length, isClose: true })
  }

  #closeTo(depth: number): void {
    while (this.#open.length > depth) {
      const { openLine, closeLine, outer } = this.#open.pop()!
      this.#restore(openLine, outer[0])
      this.#restore(closeLine, outer[1])
    }
  }

  #restore(line: string, outer: Delimiter | undefined): void {
    if (outer === undefined) this.#delimiters.delete(line)
    else this.#delimiters.set(line, outer)
  }

  // RFC 2046 5.1.1: the line break before a boundary belongs to the boundary.
  #endBody(lineStart: number): void {
    if (this.#leaf === null) return
    let end = lineStart
    if (lineStart < this.#raw.length) {
      end--
      if (end > 0 && this.#raw.at(end - 1) === 0x0d) end--
      // QUIRK: some programs write one boundary too many (mime-stalwart, malformed/020). An empty part is dropped.
      if (end <= this.#bodyStart && this.#bodyStart - this.#partStart <= 2)
        this.#open.at(-1)?.part.parts.pop()
    }
    this.#leaf.body = new ByteRange(this.#raw, this.#bodyStart, Math.max(end, this.#bodyStart))
  }
}
