// Reads the addresses from a text or table that a user provides: each once, with its line.
import { type CsvRow, readCsv, withoutGuard } from './csv.ts'

export interface ListedAddress {
  email: string
  /** Starts at 1. */
  line: number
}

/** An address with its whole row. */
export interface ListedRow extends ListedAddress {
  fields: string[]
}

export interface AddressListing {
  addresses: ListedRow[]
  /** The column headings. Empty if the table has none. */
  head: string[]
  /** The index of the address column. */
  column: number
  duplicates: number
  /** Lines without an address, unchanged. */
  others: ListedAddress[]
}

const heading = /^(?:e-?mail|address|e-?mail[ _-]?address|recipient)$/i
const looksLikeOne = /^[^\s@<>]+@[^\s@<>]+$/

/** Uses the column with an address heading, else the first column with an address. `Ada <ada@example.com>` counts too. */
export function readAddresses(text: string): AddressListing {
  const rows = readCsv(text)
  const lines = text.split('\n')
  const first = rows[0]?.fields ?? []
  const headed = first.findIndex((field) => heading.test(field.trim()))
  const column = headed >= 0 ? headed : columnOf(rows)
  const isHead = headed >= 0 && !looksLikeOne.test(bare(first[headed] ?? ''))
  const seen = new Set<string>()
  const listing: AddressListing = {
    addresses: [],
    duplicates: 0,
    others: [],
    head: isHead ? first : [],
    column,
  }
  for (const { fields, line } of isHead ? rows.slice(1) : rows) {
    const email = bare(fields[column] ?? '')
    const key = email.toLowerCase()
    if (!looksLikeOne.test(email)) listing.others.push({ email: lines[line - 1]!.trim(), line })
    else if (seen.has(key)) listing.duplicates++
    else {
      seen.add(key)
      listing.addresses.push({ email, line, fields })
    }
  }
  return listing
}

function columnOf(rows: readonly CsvRow[]): number {
  for (const { fields } of rows.slice(0, 20)) {
    const at = fields.findIndex((field) => looksLikeOne.test(bare(field)))
    if (at >= 0) return at
  }
  return 0
}

function bare(field: string): string {
  return withoutGuard((/<([^<>]+)>\s*$/.exec(field)?.[1] ?? field).trim())
}
