// Message identifiers (RFC 5322 3.6.4) out of Message-ID, In-Reply-To and References.
import { withoutComments } from './comments.ts'

const maxOctets = 998

/**
 * The identifiers of a field in their order, each with its angle brackets; the last `max` of them where there are
 * more. White space inside the brackets, left there by folding, is removed, and so are comments. Linear in the value.
 */
export function messageIds(headerValue: string, max: number): string[] {
  const ids = headerValue.includes('>') ? bracketedIds(headerValue) : bareIds(headerValue)
  return max > 0 ? ids.slice(-max) : []
}

function bracketedIds(headerValue: string): string[] {
  const ids: string[] = []
  let at = 0
  while (true) {
    const end = headerValue.indexOf('>', at)
    if (end < 0) break
    const before = headerValue.slice(Math.max(at, end - maxOctets), end)
    const start = before.lastIndexOf('<')
    const id = start < 0 ? '' : withoutObsolete(before.slice(start + 1))
    if (id !== '') ids.push(`<${id}>`)
    at = end + 1
  }
  return ids
}

/**
 * QUIRK: some programs leave out the angle brackets (header-fields-stalwart, id). Only where all words are ids: others
 * write whole sentences, as RFC 822 had it.
 */
function bareIds(headerValue: string): string[] {
  const words = headerValue.split(/\s+/).filter((word) => word !== '')
  return words.every((word) => word.length <= maxOctets && bareId.test(word))
    ? words.map((word) => `<${word}>`)
    : []
}

const bareId = /^[^\s<>@,;:()"]+@[^\s<>@,;:()"]+$/

// RFC 5322 4.5.4: comments and white space within an identifier are obsolete, and no part of it.
function withoutObsolete(written: string): string {
  const bare = withoutComments(written)
  // A parenthesis that nothing closes would take the rest with it.
  return (bare.includes('@') ? bare : written).replace(/\s+/g, '')
}
