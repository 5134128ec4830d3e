// The options of an SMTP server, and its limits.
import type { SecureContext } from 'node:tls'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import type { Backend, Gate, Listing } from './backend.ts'
import type { Peers } from './peers.ts'

export interface ServerLimits {
  /** From one reply to the end of the next command, however slowly its bytes come. */
  commandTimeoutMs: number
  /** Between two arrivals of message bytes. */
  chunkTimeoutMs: number
  /** From DATA, or the first BDAT, to the end of the message. */
  messageTimeoutMs: number
  /** For a whole session, checked between messages. */
  sessionTimeoutMs: number
  /** How often deadlines are checked. */
  sweepIntervalMs: number
  maxConnections: number
  /**
   * Per IPv4 address or IPv6 /64. A /24 or /48 may have four times as many. Trusted addresses are exempt. The same
   * holds for the next four limits.
   */
  maxConnectionsPerAddress: number
  connectionsPerMinutePerAddress: number
  messagesPerMinutePerAddress: number
  /** Permanently refused commands and messages, except unknown recipients, before an address is blocked. */
  maxErrorsPerAddress: number
  /** Unknown recipients before an address is blocked. */
  maxUnknownPerAddress: number
  /** Permanently refused commands before the session is ended. */
  maxErrors: number
  /** Per session. Trusted addresses and our own nodes have no limit. */
  maxMessages: number
}

export const defaultServerLimits: ServerLimits = {
  // RFC 5321 4.5.3.2.7: a server should wait at least 5 minutes for the next command.
  commandTimeoutMs: 300_000,
  chunkTimeoutMs: 180_000,
  messageTimeoutMs: 600_000,
  sessionTimeoutMs: 3_600_000,
  sweepIntervalMs: 1000,
  maxConnections: 1000,
  maxConnectionsPerAddress: 50,
  connectionsPerMinutePerAddress: 300,
  messagesPerMinutePerAddress: 3000,
  maxErrorsPerAddress: 100,
  maxUnknownPerAddress: 50,
  maxErrors: 20,
  maxMessages: 1000,
}

export interface SmtpServerOptions {
  /** Our name in the greeting and in EHLO. */
  hostname: string
  listen: { host: string; port: number }
  maxSizeBytes: number
  maxRecipients: number
  /**
   * Called at each EHLO and STARTTLS, so that a reloaded certificate is used. Null: STARTTLS is not offered. The context
   * sets the minimum TLS version.
   */
  secureContext(): SecureContext | null
  /** Trusted peers have no per-address limits, and their PROXY header is believed. */
  isTrusted(address: string): boolean
  /** Returns whether this EHLO name proves that the peer is one of our nodes. Our nodes guess no addresses. */
  isOwn?(name: string): boolean
  /** Called when an untrusted peer connects. The first recipient waits for the result. Absent: no lists are queried. */
  listingOf?(address: string): Promise<Listing>
  limits?: Partial<ServerLimits>
  /** Counts the peers of several servers together. Absent: this server counts its own. */
  peers?: Peers
  clock: Clock
  log: Log
  /** A gate makes it a server for submission. */
  backend: Backend | Gate
}
