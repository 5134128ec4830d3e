// The author that a message is shown with; who judges authors asks here, so that nobody judges another than is shown.
import type { Mailbox } from '../address.ts'
import { parseAddressList } from './address-list.ts'
import type { HeaderScan } from './header-scan.ts'

/** Of a From field so many characters are read: against fields of 256 KiB, of which a list takes 200 ms to read. */
export const maxFromLength = 10_000

/** The first mailbox of the first From field; null where that names no address. */
export function readAuthor(header: HeaderScan): Mailbox | null {
  return parseAddressList((header.first('from') ?? '').slice(0, maxFromLength), 1)[0] ?? null
}
