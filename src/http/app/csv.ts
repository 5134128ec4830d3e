// Comma-separated values (RFC 4180) that a spreadsheet takes for text.

/** A record with its line end. */
export function csvRecord(values: readonly string[]): string {
  return `${values.map(csvValue).join(',')}\r\n`
}

/**
 * Security: what begins like a formula is run by spreadsheets, and what stands here was written by others; an apostrophe before
 * it makes it text.
 */
function csvValue(text: string): string {
  const harmless = /^[\s]*[=+\-@\t\r]/.test(text) ? `'${text}` : text
  // RFC 4180 2.7: quotes around it, and doubled within.
  return `"${harmless.replaceAll('"', '""')}"`
}
