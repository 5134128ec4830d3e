// Collects every generated mail of the sender cases.
import { addAlignment } from './alignment.ts'
import { CaseBook } from './case-book.ts'
import { addLists } from './lists.ts'
import { addPolicies } from './policies.ts'
import { addSignatures } from './signatures.ts'
import { addSpf } from './spf.ts'

export function writeCases(): CaseBook {
  const book = new CaseBook()
  for (const add of [addAlignment, addSignatures, addSpf, addPolicies, addLists]) add(book)
  return book
}
