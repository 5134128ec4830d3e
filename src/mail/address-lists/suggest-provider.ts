// What a domain is probably a slip of: the mail provider whose name is a letter or two away.
import { domainToUnicode } from 'node:url'

/** Largest first, for of two that are as near the first is meant. Short names are a letter away from too many others. */
const providers = [
  ...['gmail.com', 'yahoo.com', 'hotmail.com', 'outlook.com', 'icloud.com', 'googlemail.com', 'proton.me'],
  ...['protonmail.com', 'yahoo.co.uk', 'yahoo.co.in', 'yahoo.co.jp', 'yahoo.com.br', 'yahoo.fr', 'yahoo.de'],
  ...['hotmail.co.uk', 'hotmail.fr', 'hotmail.de', 'hotmail.it', 'hotmail.es', 'outlook.fr', 'outlook.de'],
  ...['comcast.net', 'verizon.net', 'sbcglobal.net', 'bellsouth.net', 'btinternet.com', 'virginmedia.com'],
  ...['bigpond.com', 'orange.fr', 'wanadoo.fr', 'laposte.net', 't-online.de', 'freenet.de', 'posteo.de'],
  ...['libero.it', 'virgilio.it', 'yandex.ru', 'yandex.com', 'rambler.ru', 'seznam.cz', 'fastmail.com'],
  ...['tutanota.com', 'rediffmail.com', 'rocketmail.com', 'hanmail.net', 'telenet.be', 'bluewin.ch'],
]
const longSlip = 11
const maxLength = Math.max(...providers.map(({ length }) => length)) + 2

/**
 * The provider that `domain` (A-labels) is nearest to: one slip away, or two where the name is long. Null where it is
 * near none, or is one. Other domains that are known to be somebody's are for the caller to leave out.
 */
export function suggestProvider(domain: string): string | null {
  const written = domainToUnicode(domain)
  if (written.length > maxLength) return null
  let nearest: string | null = null
  let fewest = Number.POSITIVE_INFINITY
  for (const provider of providers) {
    if (!beginsAlike(written, provider)) continue
    const slips = countSlips(written, provider)
    if (slips === 0) return null
    if (slips > (provider.length >= longSlip ? 2 : 1) || slips >= fewest) continue
    nearest = provider
    fewest = slips
  }
  return nearest
}

/** People seldom miss the first letter; a domain that begins with another one is mostly somebody else's name. */
function beginsAlike(one: string, other: string): boolean {
  return one[0] === other[0] || (one[0] === other[1] && one[1] === other[0])
}

/** Letters too many, missing, other, or in the wrong order with their neighbour (optimal string alignment). */
function countSlips(one: string, other: string): number {
  let [before, last] = [[] as number[], Array.from({ length: other.length + 1 }, (_, column) => column)]
  for (let row = 1; row <= one.length; row++) {
    const current = [row]
    for (let column = 1; column <= other.length; column++) {
      const isOther = one[row - 1] === other[column - 1] ? 0 : 1
      let slips = Math.min(last[column]! + 1, current[column - 1]! + 1, last[column - 1]! + isOther)
      const isSwapped = one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1]
      if (row > 1 && column > 1 && isSwapped) slips = Math.min(slips, before[column - 2]! + 1)
      current.push(slips)
    }
    ;[before, last] = [last, current]
  }
  return last[other.length]!
}
