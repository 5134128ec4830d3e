// Formats a date for header fields.

/** The date in UTC. Throws if it is not valid. */
export function dateTime(at: Date): string {
  if (Number.isNaN(at.getTime())) throw new Error('a date in a header field is not valid')
  // RFC 5322 3.3: a numeric zone; "GMT" is obsolete.
  return at.toUTCString().replace('GMT', '+0000')
}
