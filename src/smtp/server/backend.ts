// What the SMTP server reports to its owner, and what it asks of it.
import type { Reply } from '../reply.ts'

/** Who speaks to us, as far as the wire can tell. */
export interface Peer {
  /** IP address, IPv4-mapped ones as IPv4; the one a trusted proxy named, if any. */
  address: string
  port: number
  /** The name given in HELO or EHLO: printable ASCII, at most 255 characters, otherwise unchecked. */
  helo: string
  /** RFC 3848 and RFC 6531 names, for the Received field. */
  protocol: 'SMTP' | 'ESMTP' | 'ESMTPS' | 'UTF8SMTP' | 'UTF8SMTPS'
  tls: Tls
  /** Its EHLO name proved it a node of ours. */
  isOwn: boolean
  /** Zones of the block lists that have the address; known from the first recipient on. */
  listedBy: string[]
}

/** What the block lists that the operator chose say of an address. */
export interface Listing {
  listedBy: string[]
  /** One of them whose word refuses mail; null: none. */
  refusedBy: string | null
}

export interface Tls {
  encrypted: boolean
  /** `TLSv1.3`; `none` without TLS. */
  protocol: string
  /** OpenSSL's standard name of the cipher; `none` without TLS. */
  cipher: string
}

export interface Path {
  /** Unquoted, its case as given. */
  localPart: string
  /** Lower-case A-labels without the trailing dot, or an address literal in brackets; empty for `<>`. */
  domain: string
  /** Canonical form: quoted only where needed; empty for the null reverse path. */
  address: string
}

export interface ReversePath extends Path {
  /** SIZE as announced, in bytes. */
  sizeBytes: number | null
  /** With `BINARYMIME` the body may have bare CRs, bare LFs and NULs; the header never does. */
  body: '7BIT' | '8BITMIME' | 'BINARYMIME' | null
  utf8: boolean
}

export interface Envelope {
  peer: Peer
  from: ReversePath
  /** The recipients accepted so far. */
  to: Path[]
}

/** One message on its way in. After `end` or `abort` nothing more is called. */
export interface Incoming {
  /** The next bytes, dots unstuffed, the caller's to keep; a promise holds the peer back until it settles. */
  write(chunk: Buffer): void | Promise<void>
  /** All bytes are here; returns the final reply, a positive one only once the message is safe. */
  end(): Promise<Reply>
  /** Connection lost, too large, bad line ends: forget everything. May come while a `write` has not settled. */
  abort(): void
}

/** A rejection or exception of any of these is a bug: it is logged, and the peer gets 451. */
export interface Backend {
  /** Null accepts the recipient; `envelope.to` holds the earlier ones. `<postmaster>` comes with our host name. */
  recipient(envelope: Envelope, to: Path): Promise<Reply | null> | Reply | null
  message(envelope: Envelope): Incoming
}
