// DNS names as text and as bytes: labels may hold any bytes, and escapes keep one label from looking like two.

// RFC 1035 2.3.4: a label has at most 63 octets, a name 255 with the length of each label and the root's empty label.
const maxLabelBytes = 63
const maxNameBytes = 255
// A byte as `\DDD` takes four characters.
const maxTextLength = 4 * maxNameBytes
/** A name has at most 127 labels to point at. More pointers would only keep the reader busy. */
const maxPointers = 127
const [dot, backslash] = [0x2e, 0x5c]

/**
 * The bytes of a name in a question. Null if DNS cannot hold it. A final dot is not part of the name. `\.` and `\DDD`
 * encode a byte of a label (RFC 1035 5.1). Other characters become UTF-8.
 */
export function writeName(text: string): Buffer | null {
  if (text.length > maxTextLength) return null
  const labels = splitLabels(Buffer.from(text))
  if (!labels || labels.some(({ length }) => length === 0 || length > maxLabelBytes)) return null
  const bytes = Buffer.concat([...labels.flatMap((label) => [Buffer.of(label.length), label]), Buffer.of(0)])
  return bytes.length <= maxNameBytes ? bytes : null
}

/** Null if an escape encodes no byte. */
function splitLabels(text: Buffer): Buffer[] | null {
  const labels: Buffer[] = []
  let label: number[] = []
  for (let at = 0; at < text.length; at++) {
    const byte = text[at]!
    if (byte === dot) {
      labels.push(Buffer.from(label))
      label = []
    } else if (byte !== backslash) label.push(byte)
    else {
      const digits = /^\d{3}/.exec(text.toString('latin1', at + 1, at + 4))?.[0]
      const escaped = digits === undefined ? text[at + 1] : Number(digits)
      if (escaped === undefined || escaped > 0xff) return null
      label.push(escaped)
      at += digits === undefined ? 1 : 3
    }
  }
  // The root is a single dot without a label.
  if (labels.length === 1 && labels[0]!.length === 0 && label.length === 0) return []
  return label.length > 0 ? [...labels, Buffer.from(label)] : labels
}

/**
 * The name at `start`, in lower case, escaped, without a final dot (the root is ''), and the position after it. Null if
 * the bytes hold no name. Reads at most 255 bytes and 127 pointers.
 */
export function readWireName(message: Buffer, start: number): { name: string; end: number } | null {
  const labels: string[] = []
  let [at, lowest, end, pointers, nameBytes] = [start, start, 0, 0, 1]
  for (;;) {
    const length = message[at]
    if (length === undefined) return null
    if (length === 0) return { name: labels.join('.'), end: end || at + 1 }
    if (length >= 0xc0) {
      if (at + 2 > message.length || ++pointers > maxPointers) return null
      end ||= at + 2
      at = message.readUInt16BE(at) & 0x3fff
      // RFC 1035 4.1.4: a pointer leads to a prior name. Any other pointer could loop.
      if (at >= lowest) return null
      lowest = at
      continue
    }
    const next = at + 1 + length
    nameBytes += 1 + length
    if (length > maxLabelBytes || next > message.length || nameBytes > maxNameBytes) return null
    labels.push(writeLabel(message.subarray(at + 1, next)))
    at = next
  }
}

/** In ASCII lower case, because DNS compares names without regard to case. */
function writeLabel(bytes: Buffer): string {
  const text = bytes.toString('latin1')
  if (/^[a-z0-9_-]*$/.test(text)) return text
  // An unescaped dot or zero byte within a label would make one name look like another.
  return text
    .replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase())
    .replaceAll(/[.\\]/g, '\\$&')
    .replaceAll(/[^\x21-\x7e]/g, (character) => `\\${character.charCodeAt(0).toString().padStart(3, '0')}`)
}
