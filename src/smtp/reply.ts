// An SMTP reply as a value, and its form on the wire.

export interface Reply {
  /** Three digits: 200 to 599. */
  code: number
  /** RFC 3463 status such as `5.1.1`; null if there is none (greeting, EHLO, 354). */
  enhanced: string | null
  /** One line, or several joined by `\n`. */
  text: string
}

const maxLines = 100
// RFC 5321 4.5.3.1.5: a reply line, code and line end included, has at most 512 octets.
const maxLineBytes = 512

/** The reply as one line: code, status, text. */
export function replyLine({ code, enhanced, text }: Reply): string {
  return [code, enhanced, text.replaceAll('\n', ' ')].filter((part) => part !== null).join(' ')
}

/** Returns the reply without its text. */
export function wordless(reply: Reply): Reply {
  return { ...reply, text: '' }
}

/** Makes a reply; shorter to write than the object. */
export function reply(code: number, enhanced: string | null, text: string): Reply {
  return { code, enhanced, text }
}

/**
 * Returns the reply's wire lines, each ended by CRLF. The status code is repeated on every line (RFC 2034 4). Anything
 * but printable ASCII becomes `?`, so that text from a peer cannot inject a reply.
 */
export function formatReply({ code, enhanced, text }: Reply): string {
  const lines = text.split('\n', maxLines)
  const status = enhanced === null ? '' : `${enhanced} `
  let wire = ''
  for (const [index, line] of lines.entries()) {
    const separator = index === lines.length - 1 ? ' ' : '-'
    const printable = (status + line.replace(/[^\x20-\x7e]/g, '?')).slice(0, maxLineBytes - 6)
    wire += `${code}${separator}${printable}\r\n`
  }
  return wire
}
