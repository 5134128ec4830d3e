// Tables as text: read as RFC 4180 says and as spreadsheets write them, written so that a spreadsheet runs nothing.

/** Rows of fields; the separator is what the first line has most of. Empty lines are left out. */
export function readCsv(text: string): string[][] {
  const source = text.replace(/^\uFEFF/, '')
  const separator = separatorOf(source)
  const rows: string[][] = []
  let [row, field, isQuoted] = [[] as string[], '', false]
  const endRow = () => {
    row.push(field)
    if (row.some((one) => one !== '')) rows.push(row)
    row = []
    field = ''
  }
  for (let at = 0; at < source.length; at++) {
    const letter = source[at]!
    if (isQuoted) {
      if (letter !== '"') field += letter
      // RFC 4180 2.7: a quote within quotes is written twice.
      else if (source[at + 1] === '"') field += source[++at]!
      else isQuoted = false
    } else if (letter === '"' && field === '') isQuoted = true
    else if (letter === separator) {
      row.push(field)
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

export function writeCsv(rows: readonly (readonly (string | number | boolean | null)[])[]): string {
  return `${rows.map((row) => row.map(writeField).join(',')).join('\r\n')}\r\n`
}

function writeField(value: string | number | boolean | null): string {
  if (typeof value !== 'string') return value === null ? '' : String(value)
  const safe = formula.test(value) ? `'${value}` : value
  return /[",\r\n;]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
