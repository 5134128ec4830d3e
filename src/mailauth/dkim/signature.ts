// Reads DKIM-Signature fields and the tags that ARC's fields share with them, as far as possible without DNS.

import type { AuthResult } from '../../base/auth-result.ts'
import { parseDomain } from '../../mail/address.ts'
import type { HeaderCanonicalization, HeaderField } from '../header-fields.ts'
import type { BodyCanonicalization } from './body-digest.ts'
import { decodeFoldedBase64, parseTagList, type TagList, withoutFolding } from './tag-list.ts'

export type VerifiedAlgorithm = 'rsa-sha256' | 'ed25519-sha256'

/** Why a signature cannot pass, whatever its key. */
export interface SignatureRefusal {
  result: Exclude<AuthResult, 'pass' | 'none' | 'softfail'>
  reason: string
}

/** The signer, and the way in which the field itself is hashed. */
export interface SealTags {
  /** d=, A-labels in lower case. */
  domain: string
  selector: string
  algorithm: VerifiedAlgorithm
  signature: Buffer
  /** The field as received with an empty b=. */
  unsigned: string
}

/** A signature over header fields and the body. */
export interface SignatureTags extends SealTags {
  headerCanonicalization: HeaderCanonicalization
  bodyCanonicalization: BodyCanonicalization
  bodyHash: Buffer
  /** l=, in bytes of the canonical body. Null for the whole body. */
  bodyLength: number | null
  /** h=, in lower case. */
  names: string[]
}

export interface DkimSignature extends SignatureTags {
  /** i=, or its default: `@` and the domain. */
  identity: string
  identityDomain: string
}

/** The parts of a field that verdicts show, as far as they can be read. */
export interface SignatureLabels {
  domain: string | null
  selector: string | null
  identity: string | null
  algorithm: string | null
  canonicalization: string | null
}

export type Read<Tags> = { status: 'ok'; tags: Tags } | { status: 'refused'; refusal: SignatureRefusal }

const maxFieldLength = 16 * 1024

/** The tags of a signature field. Refused if it has more than 16 KiB or is no tag list. */
export function readTagList(field: HeaderField): Read<TagList> {
  if (field.text.length > maxFieldLength)
    return refuse('neutral', 'the signature field is longer than 16 KiB')
  const tags = parseTagList(field.value)
  // RFC 8601 2.7.1: neutral is for syntax errors.
  if (tags === null) return refuse('neutral', 'signature syntax error: not a list of tags')
  return { status: 'ok', tags }
}

/** Reads a DKIM-Signature. Returns its labels even if it is refused. */
export function readDkimSignature(
  field: HeaderField,
  nowSeconds: number,
): Read<DkimSignature> & { labels: SignatureLabels } {
  const list = readTagList(field)
  if (list.status === 'refused') return { ...list, labels: noLabels }
  const reader = new TagReader(field, list.tags)
  // RFC 6376 3.5: v= is required and must be 1. Any other version is another protocol.
  reader.match('v', /^1$/, 'incompatible version')
  const signature = reader.readSignature(nowSeconds)
  const identity = reader.identity(signature.domain)
  // RFC 6376 5.4: a signature without From proves nothing about the author.
  if (!signature.names.includes('from')) reader.refuse('permerror', 'From field not signed')
  const dkim: DkimSignature = { ...signature, ...identity }
  return { ...reader.outcome(dkim), labels: labelsOf(dkim, reader) }
}

/**
 * Reads an ARC-Message-Signature without its i=, and returns its possible readings, usually one. `names` may be empty,
 * and v= is ignored (RFC 8617 4.1.2).
 */
export function readMessageSignature(
  field: HeaderField,
  tags: TagList,
  nowSeconds: number,
): Read<SignatureTags[]> {
  const reader = new TagReader(field, tags)
  const signature = reader.readSignature(nowSeconds)
  // RFC 8617 4.1.2: message signatures never cover seals, because seals are made last.
  if (signature.names.includes('arc-seal')) reader.refuse('permerror', 'ARC-Seal is in h=')
  if (tags.has('c')) return reader.outcome([signature])
  // QUIRK: without c= it is simple (RFC 6376 3.5), but the working group's own suite and dkimpy take it for relaxed.
  return reader.outcome([
    signature,
    { ...signature, headerCanonicalization: 'relaxed', bodyCanonicalization: 'relaxed' },
  ])
}

/** Reads an ARC-Seal without its i= and cv=. */
export function readSeal(field: HeaderField, tags: TagList): Read<SealTags> {
  const reader = new TagReader(field, tags)
  const seal = reader.readSeal()
  // RFC 8617 4.1.3: a seal with h= fails the chain.
  if (tags.has('h')) reader.refuse('permerror', 'a seal with h=')
  return reader.outcome(seal)
}

const noLabels: SignatureLabels = {
  domain: null,
  selector: null,
  identity: null,
  algorithm: null,
  canonicalization: null,
}

function labelsOf(signature: DkimSignature, reader: TagReader): SignatureLabels {
  return {
    domain: signature.domain || null,
    selector: signature.selector || null,
    identity: signature.identity || null,
    algorithm: reader.algorithm,
    canonicalization: `${signature.headerCanonicalization}/${signature.bodyCanonicalization}`,
  }
}

function refuse(
  result: SignatureRefusal['result'],
  reason: string,
): { status: 'refused'; refusal: SignatureRefusal } {
  return { status: 'refused', refusal: { result, reason } }
}

// RFC 6376 3.1: labels of letters, digits and hyphens. QUIRK: selectors with underscores are in use, and opendkim,
// dkimpy and Mail::DKIM verify them.
const selectorPattern =
  /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)*$/i

const maxNameLength = 253

/** Reads tag after tag, and keeps the first reason to refuse the signature. Returns an empty value for an unreadable tag. */
class TagReader {
  /** a=, if its value is known, even if it is refused. */
  algorithm: string | null = null
  readonly #field: HeaderField
  readonly #tags: TagList
  #refusal: SignatureRefusal | null = null

  constructor(field: HeaderField, tags: TagList) {
    this.#field = field
    this.#tags = tags
  }

  outcome<Tags>(tags: Tags): Read<Tags> {
    return this.#refusal === null ? { status: 'ok', tags } : { status: 'refused', refusal: this.#refusal }
  }

  refuse(result: SignatureRefusal['result'], reason: string): void {
    this.#refusal ??= { result, reason }
  }

  /** The value of a required tag, which must match `pattern`. */
  match(name: string, pattern: RegExp, reason = `signature syntax error in ${name}=`): string {
    const value = this.#tags.get(name)?.value
    if (value !== undefined && pattern.test(value)) return value
    // RFC 8601 2.7.1: neutral is for syntax errors and for signatures that cannot be processed.
    this.refuse('neutral', value === undefined ? `signature missing required tag ${name}=` : reason)
    return ''
  }

  /** Like `match`, but for an optional tag. */
  #matchOptional(name: string, pattern: RegExp): string | null {
    return this.#tags.has(name) ? this.match(name, pattern) : null
  }

  readSeal(): SealTags {
    return {
      algorithm: this.#readAlgorithm(),
      domain: this.#readDomain(),
      selector: this.#readSelector(),
      signature: this.#readBase64('b'),
      unsigned: this.#unsigned(),
    }
  }

  readSignature(nowSeconds: number): SignatureTags {
    const seal = this.readSeal()
    this.#matchMethod()
    this.#readTimes(nowSeconds)
    return { ...seal, ...this.#readContent() }
  }

  #readContent(): Omit<SignatureTags, keyof SealTags> {
    const form = this.#matchOptional('c', /^(?:simple|relaxed)(?:\/(?:simple|relaxed))?$/) ?? ''
    // RFC 6376 3.5: without c= both are simple. Without its second half the body is simple.
    const [header = '', body = ''] = form.split('/')
    // RFC 6376 3.5: l= has up to 76 digits. A value that a number cannot hold exactly is longer than any body.
    const length = this.#matchOptional('l', /^[0-9]{1,76}$/)
    const names = this.match('h', /^[\x21-\x7e\t\r\n ]*$/)
    return {
      headerCanonicalization: header === 'relaxed' ? 'relaxed' : 'simple',
      bodyCanonicalization: body === 'relaxed' ? 'relaxed' : 'simple',
      bodyHash: this.#readBase64('bh'),
      bodyLength: length === null ? null : Number(length),
      names: names === '' ? [] : withoutFolding(names).toLowerCase().split(':'),
    }
  }

  #readAlgorithm(): VerifiedAlgorithm {
    const value = this.match('a', /^(?:rsa-sha1|rsa-sha256|ed25519-sha256)$/, 'unsupported algorithm')
    this.algorithm = value === '' ? null : value
    // RFC 8301 3.1: rsa-sha1 must neither be used nor trusted.
    if (value === 'rsa-sha1') this.refuse('policy', 'signed with rsa-sha1')
    return value === 'ed25519-sha256' ? value : 'rsa-sha256'
  }

  #readDomain(): string {
    // RFC 8616 5: d= may be in U-labels. DNS is asked for A-labels.
    const given = decodeUtf8(this.match('d', /./s))
    const domain = parseDomain(given) ?? ''
    if (domain === '') this.refuse('neutral', 'signature syntax error in d=')
    return domain
  }

  #readSelector(): string {
    const selector = this.match('s', selectorPattern)
    if (selector.length > maxNameLength) this.refuse('neutral', 'signature syntax error in s=')
    return selector.toLowerCase()
  }

  #readBase64(name: string): Buffer {
    const decoded = decodeFoldedBase64(this.match(name, /./s))
    if (decoded === null) this.refuse('neutral', `signature syntax error in ${name}=`)
    return decoded ?? Buffer.alloc(0)
  }

  // RFC 6376 3.7: empties b=, with the white space around its value, and changes nothing else.
  #unsigned(): string {
    const { text, value } = this.#field
    const tag = this.#tags.get('b')
    if (tag === undefined) return text
    const offset = text.length - value.length
    return text.slice(0, offset + tag.start) + text.slice(offset + tag.end)
  }

  #matchMethod(): void {
    const methods = this.#tags.get('q')?.value
    // RFC 6376 3.5: q= lists the methods to find the key. Unknown methods are ignored.
    if (methods !== undefined && !withoutFolding(methods).split(':').includes('dns/txt'))
      this.refuse('neutral', 'no query method in q= that is known')
  }

  #readTimes(nowSeconds: number): void {
    const signed = this.#matchOptional('t', /^[0-9]{1,12}$/)
    const expires = this.#matchOptional('x', /^[0-9]{1,12}$/)
    if (expires === null) return
    if (signed !== null && Number(expires) <= Number(signed)) this.refuse('neutral', 'x= is not after t=')
    // RFC 6376 3.5: a signature is valid until x=, and not after it.
    if (Number(expires) < nowSeconds) this.refuse('policy', 'signature expired')
  }

  /** i=, which must be `domain` or below it. The default if the tag is missing. */
  identity(domain: string): { identity: string; identityDomain: string } {
    const given = this.#tags.get('i')?.value
    if (given === undefined) return { identity: domain && `@${domain}`, identityDomain: domain }
    const identity = withoutFolding(decodeUtf8(given))
    const identityDomain = parseDomain(identity.slice(identity.lastIndexOf('@') + 1))
    if (!identity.includes('@') || identity.length > 512 || identityDomain === null) {
      this.refuse('neutral', 'signature syntax error in i=')
      return { identity: '', identityDomain: '' }
    }
    // RFC 6376 3.5: the domain of i= is that of d= or below it.
    if (identityDomain !== domain && !identityDomain.endsWith(`.${domain}`))
      this.refuse('permerror', 'domain mismatch: i= is not below d=')
    return { identity, identityDomain }
  }
}

function decodeUtf8(text: string): string {
  return Buffer.from(text, 'latin1').toString('utf8')
}
