// Extracts message identifiers (RFC 5322 3.6.4) from Message-ID, In-Reply-To and References.
import { withoutComments } from './comments.ts'

const maxOctets = 998

/**
 * The identifiers of a field in order, each with angle brackets. If there are more than `maxIds`, the last `maxIds` of them.
 * White space inside the brackets, left there by folding, is removed, and so are comments. Linear in the value.
 */
export function messageIds(headerValue: string, maxIds: number): string[] {
  const ids = headerValue.includes('>') ? bracketedIds(headerValue) : bareIds(headerValue)
  return maxIds > 0 ? ids.slice(-maxIds) : []
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
 * QUIRK: some programs omit the angle brackets (header-fields-stalwart, id). Applies only if all words are ids, because
 * others write whole sentences, as RFC 822 allowed.
 */
function bareIds(headerValue: string): string[] {
  const words = headerValue.split(/\s+/).filter((word) => word !== '')
  return words.every((word) => word.length <= maxOctets && bareId.test(word))
    ? words.map((word) => `<${word}>`)
    : []
}

const bareId = /^[^\s<>@,;:()"]+@[^\s<>@,;:()"]+$/

// RFC 5322 4.5.4: comments and white space within an identifier are obsolete and not part of it.
function withoutObsolete(written: string): string {
  const bare = withoutComments(written)
  // A parenthesis that is never closed would remove the rest.
  return (bare.includes('@') ? bare : written).replace(/\s+/g, '')
}
