// What an SMTP server is given at its start, and the bounds it keeps.
import type { SecureContext } from 'node:tls'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import type { Backend, Listing } from './backend.ts'

export interface ServerLimits {
  /** From one reply to the end of the next command, however slowly its bytes come. */
  commandTimeoutMs: number
  /** Between two arrivals of message bytes. */
  chunkTimeoutMs: number
  /** From DATA, or the first BDAT, to the end of the message. */
  messageTimeoutMs: number
  /** Of a session, checked between messages. */
  sessionTimeoutMs: number
  /** How often deadlines are checked. */
  sweepIntervalMs: number
  maxConnections: number
  /** Per IPv4 address or IPv6 /64, four times as many per /24 or /48, as is the next one; trusted addresses are exempt. */
  maxConnectionsPerAddress: number
  connectionsPerMinutePerAddress: number
  messagesPerMinutePerAddress: number
  /** Commands and messages refused for good, and unknown recipients, before all sessions of an address are ended. */
  maxErrorsPerAddress: number
  maxUnknownPerAddress: number
  /** Commands refused for good before the session is ended. */
  maxErrors: number
  /** Of a session; those of trusted addresses and of our own nodes have no last one. */
  maxMessages: number
}

export const defaultLimits: ServerLimits = {
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
  /** Asked at each EHLO and STARTTLS, so that a reloaded certificate is used; null: STARTTLS is not offered. The context carries the minimal TLS version. */
  secureContext(): SecureContext | null
  /** Peers free of per-address limits, whose PROXY header is believed. */
  isTrusted(address: string): boolean
  /** Whether this EHLO name proves a node of ours, which guesses no names. */
  isOwn?(name: string): boolean
  /** Asked as a connection begins, of peers that are not trusted; waited for at the first recipient. Absent: no list is asked. */
  listingOf?(address: string): Promise<Listing>
  limits?: Partial<ServerLimits>
  clock: Clock
  log: Log
  backend: Backend
}
