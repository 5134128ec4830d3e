// Dominic Sayers' is_email suite: its addresses, and which of them the service sends mail to.

interface Case {
  id: string
  address: string
  category: string
  diagnosis: string
  /** Valid for SMTP, and accepted as a recipient. */
  isMailed: boolean
}

const valid = ['ISEMAIL_VALID_CATEGORY', 'ISEMAIL_DNSWARN', 'ISEMAIL_RFC5321']
/** Valid, but not accepted as recipients: literals, and domains that would be read as IPv4 addresses. */
const refusedOnPurpose = [
  'ISEMAIL_RFC5321_ADDRESSLITERAL',
  'ISEMAIL_RFC5321_IPV6DEPRECATED',
  'ISEMAIL_RFC5321_TLDNUMERIC',
]

/** The cases of `tests.xml`. */
export function readIsEmailCases(xml: string): Case[] {
  return [...xml.matchAll(/<test id="(\d+)">(.*?)<\/test>/gs)].map(([, id, body]) => {
    const category = /<category>(.*?)</.exec(body!)![1]!
    const diagnosis = /<diagnosis>(.*?)</.exec(body!)![1]!
    const address = readAddress(/<address>(.*?)<\/address>/s.exec(body!)?.[1] ?? '')
    const isMailed = valid.includes(category) && !refusedOnPurpose.includes(diagnosis)
    return { id: id!, address, category, diagnosis, isMailed }
  })
}

/** The suite writes control characters as the pictures U+2400 to U+241F, or as XML references. */
function readAddress(xml: string): string {
  return xml
    .replace(/&#x([0-9A-Fa-f]+);/g, (_, hex) => String.fromCodePoint(Number.parseInt(hex, 16)))
    .replace(/[\u2400-\u241F]/g, (picture) => String.fromCharCode(picture.charCodeAt(0) - 0x2400))
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&amp;', '&')
}
