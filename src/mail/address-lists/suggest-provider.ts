// Suggests the mail provider whose name is one or two letters away from a misspelled domain.
import { domainToUnicode } from 'node:url'

/** Largest first: of two equally near providers the first wins. Short names are one letter away from too many others. */
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
 * The provider nearest to `domain` (A-labels): one slip away, or two if the name is long. Null if no provider is near,
 * or if `domain` is a provider. The caller must exclude other domains that are known to exist.
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

/** People seldom mistype the first letter. A domain with another first letter is mostly an unrelated name. */
function beginsAlike(one: string, other: string): boolean {
  return one[0] === other[0] || (one[0] === other[1] && one[1] === other[0])
}

/** Counts extra, missing and wrong letters, and swapped neighbours (optimal string alignment). */
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
