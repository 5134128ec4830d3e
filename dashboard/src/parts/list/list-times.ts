// Times in other services' exports: ISO 8601, the mail format (RFC 5322), and seconds since 1970.

const iso =
  /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?)? ?(Z|UTC|GMT|[+-]\d\d(?::?\d\d)?)?(?: UTC)?$/i
const ofMail = /^(?:[a-z]{3}, ?)?(\d{1,2}) ([a-z]{3}) (\d{4}) (\d\d):(\d\d):(\d\d) (Z|UTC|GMT|[+-]\d{4})$/i
const seconds = /^\d{9,10}(?:\.\d{1,9})?$/
const months = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']

/** Returns milliseconds since 1970, or null if the text is no existing date. A date without a zone is UTC. */
export function readTime(text: string): number | null {
  const written = text.trim()
  return seconds.test(written) ? Number(written) * 1000 : readDate(written)
}

/** Like `readTime`, but rejects plain numbers, which are rarely times. */
export function readDate(text: string): number | null {
  const written = text.trim()
  const [, year, month, day, hour, minute, second, fraction, zone] = iso.exec(written) ?? []
  if (year && month && day)
    return timeOf(`${year}-${month}-${day}`, [hour, minute, second, fraction], zone ?? 'Z')
  const [, mailDay = '', name = '', mailYear = '', ...rest] = ofMail.exec(written) ?? []
  const mailMonth = months.indexOf(name.toLowerCase()) + 1
  if (mailMonth === 0) return null
  const date = `${mailYear}-${String(mailMonth).padStart(2, '0')}-${mailDay.padStart(2, '0')}`
  return timeOf(date, rest.slice(0, 3), rest[3] ?? 'Z')
}

type Clock = (string | undefined)[]

function timeOf(
  date: string,
  [hour = '00', minute = '00', second = '00', fraction = '']: Clock,
  zone: string,
) {
  const ms = Date.parse(`${date}T${hour}:${minute}:${second}.${fraction.slice(0, 3).padEnd(3, '0')}Z`)
  // Engines accept February 30 and read it as a day of March.
  if (Number.isNaN(ms) || new Date(ms).toISOString().slice(0, 10) !== date) return null
  return ms - offsetMs(zone)
}

/** Reads `-05:00`, `+0530` and `+00`. Named zones count as UTC. */
function offsetMs(zone: string): number {
  const [, sign, hours, minutes] = /^([+-])(\d\d):?(\d\d)?$/.exec(zone) ?? []
  const ms = (Number(hours ?? 0) * 60 + Number(minutes ?? 0)) * 60_000
  return sign === '-' ? -ms : ms
}
