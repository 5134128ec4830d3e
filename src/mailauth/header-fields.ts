// Reads the header fields of a mail as signatures cover them: in order, byte for byte, and in canonical form.

/** One field. Its text is as received, in Latin-1, without its last CRLF. */
export class HeaderField {
  /** In lower case, without the white space before the colon. Empty if the line is no field. */
  readonly name: string
  readonly text: string
  /** The part of `text` after the colon. */
  readonly value: string
  #relaxed: string | null = null

  constructor(text: string) {
    const colon = text.indexOf(':')
    this.text = text
    this.name = text.slice(0, Math.max(colon, 0)).trimEnd().toLowerCase()
    this.value = text.slice(colon + 1)
  }

  /** The relaxed form without its line end, made once for all signatures. */
  get relaxed(): string {
    this.#relaxed ??= relaxField(this.text)
    return this.#relaxed
  }
}

export type HeaderCanonicalization = 'simple' | 'relaxed'

/** The field as signatures hash it, without its line end. */
export function canonicalField(field: HeaderField, canonicalization: HeaderCanonicalization): string {
  // RFC 6376 3.4.1: "simple" changes nothing.
  return canonicalization === 'simple' ? field.text : field.relaxed
}

// RFC 6376 3.4.2: lower case, unfolded, one space for many, none around the colon or at the end.
export function relaxField(text: string): string {
  const colon = text.indexOf(':')
  const value = text.slice(colon + 1)
  const unfolded = value.replaceAll('\r\n', '').replace(/\t[\t ]*| [\t ]+/g, ' ')
  const start = unfolded.startsWith(' ') ? 1 : 0
  const end = unfolded.endsWith(' ') ? unfolded.length - 1 : unfolded.length
  return `${text.slice(0, Math.max(colon, 0)).trimEnd().toLowerCase()}:${unfolded.slice(start, end)}`
}

const maxHeaderBytes = 256 * 1024
const maxFields = 1_000

/**
 * The fields of a header block, up to the empty line or the end. Null if it has more than 256 KiB or 1,000 fields.
 * Signatures of such a header cost more to hash than they are worth.
 */
export function readFields(block: Buffer): HeaderField[] | null {
  if (block.length > maxHeaderBytes) return null
  const text = block.toString('latin1')
  const end = text.startsWith('\r\n') ? 0 : text.indexOf('\r\n\r\n')
  const lines = text.slice(0, end < 0 ? undefined : end).split(/\r\n(?![\t ])/)
  if (lines.length > maxFields) return null
  return lines.filter((line) => line !== '').map((line) => new HeaderField(line))
}

/** The signed part of a header, in the signature's order, each field with its CRLF. `own` is the signature itself. */
export function signedHeader(
  fields: readonly HeaderField[],
  own: HeaderField,
  { names, canonicalization }: { names: readonly string[]; canonicalization: HeaderCanonicalization },
): string {
  const remaining = new Map<string, HeaderField[]>(names.map((name) => [name, []]))
  for (const field of fields) {
    // RFC 6376 3.5: h= does not cover its own signature field.
    if (field !== own && field.name !== '') remaining.get(field.name)?.push(field)
  }
  let canonical = ''
  for (const name of names) {
    // RFC 6376 5.4.2: fields of one name are taken from the bottom up.
    const field = remaining.get(name)!.pop()
    // RFC 6376 5.4: a missing field counts as empty.
    if (field !== undefined) canonical += `${canonicalField(field, canonicalization)}\r\n`
  }
  return canonical
}
