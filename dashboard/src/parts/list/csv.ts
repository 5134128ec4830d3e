// Tables as text: read as RFC 4180 says and as spreadsheets write them, written so that a spreadsheet runs nothing.

export interface CsvRow {
  fields: string[]
  /** On which line of the text it begins, from 1. */
  line: number
}

/** The separator is what the first line has most of. Empty lines are left out. */
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

/** A field that begins so is a formula to spreadsheets, which may send what stands beside it to anyone. */
const formula = /^[=+\-@\t\r]/

/** Takes the apostrophe off that keeps a field from being a formula. */
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
