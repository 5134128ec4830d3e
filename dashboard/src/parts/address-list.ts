// The addresses in a text or a table that somebody brings: each once, with the line where it stands.
import { readCsv } from './csv.ts'

export interface ListedAddress {
  email: string
  /** From 1. */
  line: number
}

export interface AddressListing {
  addresses: ListedAddress[]
  duplicates: number
  /** Lines that hold no address. */
  others: ListedAddress[]
}

const heading = /^(?:e-?mail|address|e-?mail[ _-]?address|recipient)$/i
const looksLikeOne = /^[^\s@<>]+@[^\s@<>]+$/

/** Of a table the column that is headed so, else the first that has an address; in a line `Ada <ada@example.com>` counts too. */
export function readAddresses(text: string): AddressListing {
  const rows = readCsv(text)
  const [first = []] = rows
  const headed = first.findIndex((field) => heading.test(field.trim()))
  const column = headed >= 0 ? headed : columnOf(rows)
  const isHead = headed >= 0 && !looksLikeOne.test(bare(first[headed] ?? ''))
  const seen = new Set<string>()
  const listing: AddressListing = { addresses: [], duplicates: 0, others: [] }
  for (const [index, row] of rows.entries()) {
    if (index === 0 && isHead) continue
    const email = bare(row[column] ?? '')
    const key = email.toLowerCase()
    if (!looksLikeOne.test(email)) listing.others.push({ email: row.join(', ').trim(), line: index + 1 })
    else if (seen.has(key)) listing.duplicates++
    else {
      seen.add(key)
      listing.addresses.push({ email, line: index + 1 })
    }
  }
  return listing
}

function columnOf(rows: readonly string[][]): number {
  for (const row of rows.slice(0, 20)) {
    const at = row.findIndex((field) => looksLikeOne.test(bare(field)))
    if (at >= 0) return at
  }
  return 0
}

function bare(field: string): string {
  return (/<([^<>]+)>\s*$/.exec(field)?.[1] ?? field).trim().replace(/^'(?=[=+\-@])/, '')
}
