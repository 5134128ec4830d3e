// Tables as text: reads RFC 4180 and spreadsheet exports, and writes files from which a spreadsheet runs nothing.

export interface CsvRow {
  fields: string[]
  /** The line of the text where the row begins, from 1. */
  line: number
}

/** The separator is the most frequent candidate in the first line. Empty lines are left out. */
export function readCsv(text: string): CsvRow[] {
  const source = text.replace(/^\uFEFF/, '')
  const separator = separatorOf(source)
  const rows: CsvRow[] = []
  let [fields, field, isQuoted, line, begunAt] = [[] as string[], '', false, 1, 1]
  const endRow = () => {
    fields.push(field)
    if (fields.some((one) => one !== '')) rows.push({ fields, line: begunAt })
    fields = []
    field = ''
    begunAt = line
  }
  for (let at = 0; at < source.length; at++) {
    const letter = source[at]!
    if (letter === '\n') line++
    if (isQuoted) {
      if (letter !== '"') field += letter
      // RFC 4180 2.7: a quote within quotes is written twice.
      else if (source[at + 1] === '"') field += source[++at]!
      else isQuoted = false
    } else if (letter === '"' && field === '') isQuoted = true
    else if (letter === separator) {
      fields.push(field)
      field = ''
    } else if (letter === '\n') endRow()
    else if (letter !== '\r') field += letter
  }
  endRow()
  return rows
}

function separatorOf(text: string): string {
  const line = text.slice(0, text.search(/[\r\n]|$/))
  const counts = [',', ';', '\t'].map((one) => [one, line.split(one).length] as const)
  return counts.reduce((most, one) => (one[1] > most[1] ? one : most))[0]
}

/** Spreadsheets treat a field with such a start as a formula, which can send neighbouring cells to anyone. */
const formula = /^[=+\-@\t\r]/

/** Removes the apostrophe that stops a field from being a formula. */
export function withoutGuard(field: string): string {
  return field.replace(/^'(?=[=+\-@\t\r])/, '')
}

export function writeCsv(rows: readonly (readonly (string | number | boolean | null)[])[]): string {
  return `${rows.map((row) => row.map(writeField).join(',')).join('\r\n')}\r\n`
}

function writeField(value: string | number | boolean | null): string {
  if (typeof value !== 'string') return value === null ? '' : String(value)
  const safe = formula.test(value) ? `'${value}` : value
  return /[",\r\n;]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
