// Comma-separated values (RFC 4180) that a spreadsheet reads as text.

/** Returns a record with its line end. */
export function csvRecord(values: readonly string[]): string {
  return `${values.map(csvValue).join(',')}\r\n`
}

/**
 * Security: spreadsheets run a value that begins like a formula, and others wrote these values. A leading apostrophe makes
 * them text.
 */
function csvValue(text: string): string {
  const harmless = /^[\s]*[=+\-@\t\r]/.test(text) ? `'${text}` : text
  // RFC 4180 2.7: quotes around it, and doubled within.
  return `"${harmless.replaceAll('"', '""')}"`
}
