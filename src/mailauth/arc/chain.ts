// Assembles the fields of an Authenticated Received Chain, and checks whether they can form one (RFC 8617 5.2).
import { withoutComments } from '../../mail/read/comments.ts'
import {
  readMessageSignature,
  readSeal,
  readTagList,
  type SealTags,
  type SignatureTags,
} from '../dkim/signature.ts'
import type { TagList } from '../dkim/tag-list.ts'
import type { HeaderField } from '../header-fields.ts'
import { type AuthResults, parseAuthResults } from '../parse-auth-results.ts'

/** The fields that one hop added when it sealed the mail. */
export interface ArcSet {
  /** Counted from 1, the first hop. */
  instance: number
  results: HeaderField
  /** `ways` lists the possible readings of the signature, usually one. Empty if the signature is refused. */
  message: { field: HeaderField; ways: SignatureTags[]; refusal: string }
  seal: { field: HeaderField; tags: SealTags }
}

export type ArcChain =
  | { status: 'none' }
  | { status: 'failed'; reason: string }
  /** The sets in the order of their instances. At least one. */
  | { status: 'ok'; sets: ArcSet[] }

const maxSets = 50

const names = {
  results: 'arc-authentication-results',
  message: 'arc-message-signature',
  seal: 'arc-seal',
} as const
type Kind = keyof typeof names

/** The chain of a header, as far as it can be checked without keys. */
export function readChain(fields: readonly HeaderField[], nowSeconds: number): ArcChain {
  const kinds = Object.keys(names) as Kind[]
  const found = fields.filter(({ name }) => kinds.some((kind) => names[kind] === name))
  if (found.length === 0) return { status: 'none' }
  // RFC 8617 5.2: more than 50 sets fail.
  if (found.length > maxSets * kinds.length) return failed(`more than ${maxSets} ARC sets`)
  const drafts: Draft[] = []
  for (const kind of kinds) {
    const reason = sortInto(drafts, kind, found)
    if (reason !== null) return failed(reason)
  }
  return readSets(drafts, nowSeconds)
}

function failed(reason: string): { status: 'failed'; reason: string } {
  return { status: 'failed', reason }
}

interface Numbered {
  field: HeaderField
  tags: TagList
}

type Draft = Partial<Record<Kind, Numbered>>

/** Adds each field of one kind to the set of its instance. Returns the reason if a field cannot be part of a chain. */
function sortInto(drafts: Draft[], kind: Kind, found: readonly HeaderField[]): string | null {
  for (const field of found.filter(({ name }) => name === names[kind])) {
    const read = kind === 'results' ? readPrefix(field) : readTagList(field)
    if (read.status === 'refused') return `${names[kind]}: ${read.refusal.reason}`
    const instance = instanceOf(read.tags)
    if (instance === null) return `${names[kind]}: no instance from 1 to ${maxSets} in i=`
    const draft = (drafts[instance - 1] ??= {})
    // RFC 8617 5.2: each set has exactly one field of each kind.
    if (draft[kind] !== undefined) return `${names[kind]}: two with i=${instance}`
    draft[kind] = { field, tags: read.tags }
  }
  return null
}

// RFC 8617 4.1.1: i= and a semicolon begin ARC-Authentication-Results. Comments may occur between them.
const prefix = /^[\t\r\n ]*i[\t\r\n ]*=[\t\r\n ]*(\d{1,2})[\t\r\n ]*;/

function readPrefix(field: HeaderField): { status: 'ok'; tags: TagList } {
  const value = prefix.exec(withoutComments(field.value))?.[1] ?? ''
  return { status: 'ok', tags: new Map([['i', { value, start: 0, end: 0 }]]) }
}

/** The results in ARC-Authentication-Results, without their instance. */
export function reportedResults(results: HeaderField): AuthResults | null {
  return parseAuthResults(withoutComments(results.value).replace(prefix, ''))
}

function instanceOf(tags: TagList): number | null {
  const value = tags.get('i')?.value ?? ''
  const instance = Number(value)
  return /^[0-9]{1,2}$/.test(value) && instance >= 1 && instance <= maxSets ? instance : null
}

function readSets(drafts: readonly Draft[], nowSeconds: number): ArcChain {
  const sets: ArcSet[] = []
  for (let instance = 1; instance <= drafts.length; instance++) {
    const { results, message, seal } = drafts[instance - 1] ?? {}
    // RFC 8617 5.2: instances go from 1 to the last without a gap, and each set is complete.
    if (!results || !message || !seal) return failed(`ARC set ${instance} is not whole`)
    const reason = wrongStatus(seal.tags, instance)
    if (reason !== null) return failed(reason)
    const sealed = readSeal(seal.field, seal.tags)
    if (sealed.status === 'refused') return failed(`arc-seal ${instance}: ${sealed.refusal.reason}`)
    const signed = readMessageSignature(message.field, message.tags, nowSeconds)
    sets.push({
      instance,
      results: results.field,
      message: {
        field: message.field,
        ways: signed.status === 'ok' ? signed.tags : [],
        refusal: signed.status === 'ok' ? '' : signed.refusal.reason,
      },
      seal: { field: seal.field, tags: sealed.tags },
    })
  }
  return { status: 'ok', sets }
}

// RFC 8617 5.2: cv= is none in the first seal and pass in all others. A single fail ends the chain for good.
function wrongStatus(tags: TagList, instance: number): string | null {
  const status = tags.get('cv')?.value
  if (status === (instance === 1 ? 'none' : 'pass')) return null
  return status === 'fail' ? `arc-seal ${instance} says cv=fail` : `arc-seal ${instance}: wrong cv=`
}
