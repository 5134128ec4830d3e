// Decodes base64.

/** Returns the bytes, or null if the text is not canonical base64. */
export function decodeBase64(text: string): Buffer | null {
  const bytes = Buffer.from(text, 'base64')
  // RFC 4648 3.5: foreign characters, missing padding and stray bits are refused; the decoder skips them.
  return bytes.toString('base64') === text ? bytes : null
}
