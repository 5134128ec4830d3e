// Reads the author that a message is shown with, so that every check judges the author whom people see.
import type { Mailbox } from '../address.ts'
import { parseAddressList } from './address-list.ts'
import type { HeaderScan } from './header-scan.ts'

/** Up to this many characters of a From field are read, because a list of 256 KiB takes 200 ms. */
export const maxFromLength = 10_000

/** The first mailbox of the first From field, or null if it contains no address. */
export function readAuthor(header: HeaderScan): Mailbox | null {
  return parseAddressList((header.first('from') ?? '').slice(0, maxFromLength), 1)[0] ?? null
}
