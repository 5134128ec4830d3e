// An inline picture of a mail, read from its attachment as a data: URL, only if its bytes are those of a picture.
const mostBytes = 8 << 20

/** The first bytes of each type. The sender's own label does not count. */
const kinds: [type: string, begins: RegExp][] = [
  ['image/png', /^\x89PNG\r\n/],
  ['image/jpeg', /^\xff\xd8\xff/],
  ['image/gif', /^GIF8/],
  ['image/webp', /^RIFF.{4}WEBP/s],
  ['image/bmp', /^BM/],
]

/** Returns null if the file is no picture, is too large, or cannot be fetched. */
export async function readInlineImage(path: string, sizeBytes: number): Promise<string | null> {
  if (sizeBytes > mostBytes) return null
  const answer = await fetch(path, { credentials: 'same-origin' }).catch(() => null)
  if (!answer?.ok) return null
  const bytes = new Uint8Array(await answer.arrayBuffer())
  const start = String.fromCharCode(...bytes.subarray(0, 16))
  const kind = kinds.find(([, begins]) => begins.test(start))
  return kind ? `data:${kind[0]};base64,${toBase64(bytes)}` : null
}

function toBase64(bytes: Uint8Array): string {
  let text = ''
  for (let at = 0; at < bytes.length; at += 8_192)
    text += String.fromCharCode(...bytes.subarray(at, at + 8_192))
  return btoa(text)
}
