// Reads the addresses of a CSV file, of any of the known services or of our own.

export interface AddressFile {
  /** The service that wrote the file, as far as its columns show. */
  format: string
  addresses: string[]
}

/** The columns that only the exports of one service have, and the one with the address. */
const services: [format: string, columns: string[], address: string][] = [
  ['Postmark', ['emailaddress', 'suppressionreason'], 'emailaddress'],
  ['SES', ['emailaddress', 'reason'], 'emailaddress'],
  ['Mailgun', ['address', 'created_at'], 'address'],
  ['SendGrid', ['email', 'created'], 'email'],
]
const addressColumns = ['email', 'address', 'emailaddress', 'e-mail', 'email_address', 'recipient']

/** Without a line of column names, the first cell with an `@` of each line is its address. Each address comes once. */
export function readAddresses(text: string): AddressFile {
  const rows = parseCsv(text.replace(/^\ufeff/, ''))
  const names = (rows[0] ?? []).map((name) => name.trim().toLowerCase())
  const service = services.find(([, columns]) => columns.every((column) => names.includes(column)))
  const column = names.indexOf(service?.[2] ?? addressColumns.find((name) => names.includes(name)) ?? '')
  const listed = column < 0 ? rows : rows.slice(1)
  const cells = listed.map((row) => (column < 0 ? row.find((cell) => cell.includes('@')) : row[column]))
  const addresses = new Set(cells.map((cell) => cell?.trim() ?? '').filter((cell) => cell !== ''))
  return { format: service?.[0] ?? 'CSV', addresses: [...addresses] }
}

/** RFC 4180 2: cells in quotes may contain commas, line ends, and doubled quotes. Linear. */
export function parseCsv(text: string): string[][] {
  const rows: string[][] = [[]]
  for (let position = 0; ; ) {
    const { cell, end } = readCell(text, position)
    rows.at(-1)!.push(cell)
    if (end === text.length) break
    position = text.startsWith('\r\n', end) ? end + 2 : end + 1
    if (text[end] !== ',') rows.push([])
  }
  return rows.filter((row) => row.length > 1 || (row[0] ?? '') !== '')
}

/** Returns a cell, and the position of the comma or the line end after it. */
function readCell(text: string, start: number): { cell: string; end: number } {
  let [cell, position] = ['', start]
  while (text[position] === '"') {
    const close = text.indexOf('"', position + 1)
    if (close < 0) return { cell: cell + text.slice(position + 1), end: text.length }
    // A doubled quote is one quote, and the cell goes on.
    cell += (position > start ? '"' : '') + text.slice(position + 1, close)
    position = close + 1
  }
  separator.lastIndex = position
  const end = separator.exec(text)?.index ?? text.length
  return { cell: cell + text.slice(position, end), end }
}

const separator = /[,\r\n]/g

export function writeCell(text: string): string {
  // Security: a spreadsheet would run a cell that begins like a formula.
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
