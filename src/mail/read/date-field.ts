// Parses the Date field (RFC 5322 3.3), with the obsolete forms of 4.3.
import { withoutComments } from './comments.ts'

const maxField = 1000
const months = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']

// RFC 5322 4.3: offsets of the North American zones, in hours. All other letters say nothing about the zone.
const zoneHours: Record<string, number> = {
  edt: -4,
  est: -5,
  cdt: -5,
  cst: -6,
  mdt: -6,
  mst: -7,
  pdt: -7,
  pst: -8,
}

const dateTime =
  /(\d{1,2})[\s-]{1,20}([a-z]{3})[a-z]{0,6}[\s,-]{1,20}(\d{2,4})\s{1,20}(\d{1,2}):(\d{2})(?::(\d{2}))?\s{0,20}(?:([+-]\d{2}):?(\d{2})|([a-z]{1,5}))?/i

/** The instant that the field names, or null if it names none between the years 1900 and 9999. */
export function parseDateField(field: string): Date | null {
  const match = dateTime.exec(withoutComments(field.slice(0, maxField)))
  if (match === null) return null
  const [, day, month, year, hour, minute, second, offsetHours, offsetMinutes, zone] = match
  const monthIndex = months.indexOf(month!.toLowerCase())
  const fullYear = readYear(year!)
  const isTime = Number(hour) < 24 && Number(minute) < 60 && Number(second ?? 0) <= 60
  if (monthIndex < 0 || Number(day) < 1 || Number(day) > 31 || !isTime || fullYear < 1900) return null
  const sign = offsetHours?.startsWith('-') ? -1 : 1
  const offset =
    offsetHours === undefined
      ? (zoneHours[(zone ?? '').slice(0, 3).toLowerCase()] ?? 0) * 60
      : Number(offsetHours) * 60 + sign * Number(offsetMinutes)
  return new Date(
    Date.UTC(fullYear, monthIndex, Number(day), Number(hour), Number(minute) - offset, Number(second ?? 0)),
  )
}

// RFC 5322 4.3: two digits below 50 count from 2000, other short years from 1900.
function readYear(digits: string): number {
  const year = Number(digits)
  if (digits.length === 2 && year < 50) return 2000 + year
  return digits.length < 4 ? 1900 + year : year
}
