// Comma-separated values (RFC 4180) that a spreadsheet reads as text.

/** Returns a record with its line end. */
export function csvRecord(values: readonly string[]): string {
  return `${values.map(csvValue).join(',')}\r\n`
}

/**
 * Security: spreadsheets run a value that begins like a formula, and someone else may have chosen the value. A leading
 * apostrophe makes it text.
 */
function csvValue(text: string): string {
  const harmless = /^[\s]*[=+\-@\t\r]/.test(text) ? `'${text}` : text
  // RFC 4180 2.7: a quote within a quoted value is doubled.
  return `"${harmless.replaceAll('"', '""')}"`
}
