// Names of DNS as text and as bytes: labels of any bytes, escaped so that no label can pass for two.

// RFC 1035 2.3.4: 63 octets a label, 255 a name with the length of each label and the empty one of the root.
const maxLabelBytes = 63
const maxNameBytes = 255
// A byte as `\DDD` is four characters.
const maxTextLength = 4 * maxNameBytes
/** More would only be there to keep the reader busy: a name has at most 127 labels to point at. */
const maxPointers = 127
const [dot, backslash] = [0x2e, 0x5c]

/**
 * The bytes of a name as the question has them; null where DNS cannot hold it. A final dot is none of the name's, `\.`
 * and `\DDD` stand for a byte of a label (RFC 1035 5.1), other characters for their UTF-8.
 */
export function writeName(text: string): Buffer | null {
  if (text.length > maxTextLength) return null
  const labels = splitLabels(Buffer.from(text))
  if (!labels || labels.some(({ length }) => length === 0 || length > maxLabelBytes)) return null
  const bytes = Buffer.concat([...labels.flatMap((label) => [Buffer.of(label.length), label]), Buffer.of(0)])
  return bytes.length <= maxNameBytes ? bytes : null
}

/** Null where an escape stands for no byte. */
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
  // The root alone is a dot without a label before it.
  if (labels.length === 1 && labels[0]!.length === 0 && label.length === 0) return []
  return label.length > 0 ? [...labels, Buffer.from(label)] : labels
}

/**
 * The name that begins at `start`, in lower case, escaped, without a final dot (the root is ''), and where what follows
 * it begins. Null where the bytes hold none. Takes at most 255 bytes and 127 pointers of work.
 */
export function readName(message: Buffer, start: number): { name: string; end: number } | null {
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
      // RFC 1035 4.1.4: a pointer leads to a prior name. One that does not could lead round and round.
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

/** As the lower case of ASCII, for that is how DNS compares. */
function writeLabel(bytes: Buffer): string {
  const text = bytes.toString('latin1')
  if (/^[a-z0-9_-]*$/.test(text)) return text
  // A dot or a zero byte within a label, left as it is, would make one name look like another.
  return text
    .replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase())
    .replaceAll(/[.\\]/g, '\\$&')
    .replaceAll(/[^\x21-\x7e]/g, (character) => `\\${character.charCodeAt(0).toString().padStart(3, '0')}`)
}
