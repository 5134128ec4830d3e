// The interface between the SMTP server and its owner: facts about peers and messages, and the calls that decide on them.
import type { Reply } from '../reply.ts'

/** The connected client, as far as the wire shows. */
export interface Peer {
  /** IP address, IPv4-mapped ones as IPv4. If a trusted proxy named a peer, the peer's address. */
  address: string
  port: number
  /** The name given in HELO or EHLO: printable ASCII, at most 255 characters, otherwise unchecked. */
  helo: string
  /** RFC 3848 and RFC 6531 names, for the Received field. */
  protocol: 'SMTP' | 'ESMTP' | 'ESMTPS' | 'UTF8SMTP' | 'UTF8SMTPS'
  tls: Tls
  /** True if its EHLO name proves that it is one of our nodes. */
  isOwn: boolean
  /** Zones of the block lists that list the address. Known from the first recipient on. */
  listedBy: string[]
}

/** An address's entries in the block lists that the operator chose. */
export interface Listing {
  listedBy: string[]
  /** One of the lists whose entry refuses mail; null if none does. */
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
  /** Unquoted, in its original case. */
  localPart: string
  /** Lower-case A-labels without the trailing dot, or an address literal in brackets; empty for `<>`. */
  domain: string
  /** Canonical form: quoted only where needed; empty for the null reverse path. */
  address: string
}

export interface ReversePath extends Path {
  /** SIZE as announced, in bytes. */
  sizeBytes: number | null
  /** With `BINARYMIME` the body may have bare CRs, bare LFs and NULs. The header never may. */
  body: '7BIT' | '8BITMIME' | 'BINARYMIME' | null
  needsUtf8: boolean
  /** REQUIRETLS was given (RFC 8689). */
  requiresTls?: boolean
  /** The parameter AUTH names a submitter (RFC 4954 5), which counts for nothing. */
  namesLogin?: boolean
}

export interface Envelope {
  peer: Peer
  from: ReversePath
  /** The recipients accepted so far. */
  to: Path[]
}

/** One message being received. After `end` or `abort` no method is called. */
export interface Incoming {
  /** Takes the next bytes, dots unstuffed. The backend may keep the buffer. A promise pauses the peer until it settles. */
  write(chunk: Buffer): void | Promise<void>
  /** Called when all bytes were written. Returns the final reply, a positive one only if the message is durable. */
  end(): Promise<Reply>
  /** Discards the message: connection lost, too large, bad line ends. May be called before a `write` has settled. */
  abort(): void
}

/** If any of these throws or rejects, that is a bug: the server logs it, and the peer gets 451. */
export interface Backend {
  /** Null allows a message. Absent: every message is allowed. */
  begin?(from: ReversePath): Promise<Reply | null>
  /** Null accepts the recipient. `envelope.to` holds the earlier ones. `<postmaster>` gets our host name as its domain. */
  recipient(envelope: Envelope, to: Path): Promise<Reply | null> | Reply | null
  message(envelope: Envelope): Incoming
}

/** In place of a backend, for a server that takes mail only from clients that authenticate (RFC 6409 4.3). */
export interface Gate {
  /** `implicit`: TLS begins with the connection (RFC 8314 3.3). */
  tls: 'implicit' | 'starttls'
  /** Returns the backend for this client's mail, or the refusal. `secret` is the client's password. */
  admit(secret: string, address: string): Promise<Backend | Reply>
}
