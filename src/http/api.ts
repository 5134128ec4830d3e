// What the routes are given: the typed Fastify instance, the parts of the service, and the caller on each request.
import type { FastifyRequest } from 'fastify'
import type { TSchema } from 'typebox'
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { SecretBox } from '../base/secret-box.ts'
import type { RequestRate } from '../flow/accounts/authenticate.ts'
import type { Caller, Scope } from '../flow/caller.ts'
import type { PolicyDeps } from '../flow/domains/mta-sts-policy.ts'
import type { verifyDomain } from '../flow/domains/verify-domain.ts'
import type { changeWebhook } from '../flow/events/endpoints.ts'
import type { Guard } from '../flow/people/guard.ts'
import type { LetterLimits } from '../flow/people/letter-limits.ts'
import type { Oidc } from '../flow/people/oidc.ts'
import type { Passwords } from '../flow/people/passwords.ts'
import type { Post } from '../flow/people/post.ts'
import type { Sessions, SignedIn } from '../flow/people/sessions.ts'
import type { readCaptured } from '../flow/reading/operator-mail.ts'
import type { readSource } from '../flow/reading/read-mailbox.ts'
import type { InboxSearches } from '../flow/searching/search-inbox.ts'
import type { Acceptance } from '../flow/sending/accept-send.ts'
import type { Validation } from '../flow/validation/validate.ts'
import type { Db, Queryable } from '../postgres/db.ts'
import type { Limits } from '../store/accounts/organizations.ts'
import type { HttpServer } from '../web/server.ts'
import type { Holding } from './body/byte-budget.ts'
import type { LargeBody } from './body/large-bodies.ts'
import type { OperationNotes } from './document/document.ts'
import type { ErrorCode } from './errors.ts'
import type { EventStreams } from './stream/event-streams.ts'
import type { MessageWaits } from './stream/message-waits.ts'

export type Api = HttpServer

/** Who calls; refuses whom it does not know. */
export type Authenticate = (request: FastifyRequest) => Promise<Caller>

export interface HttpDeps {
  db: Db
  clock: Clock
  log: Log
  secretBox: SecretBox
  authenticate: Authenticate
  requestRate: RequestRate
  acceptance: Acceptance
  validation: Validation
  blobs: Parameters<typeof readSource>[0]['blobs']
  resolver: Parameters<typeof verifyDomain>[0]['resolver']
  /** Which URLs may be webhooks. */
  addressGuard: Parameters<typeof changeWebhook>[0]['guard']
  eventStreams: EventStreams
  messageWaits: MessageWaits
  inboxSearches: InboxSearches
  /** Customers' domains, for their MTA-STS policies; and what those say now. */
  domains: PolicyDeps['domains']
  mtaStsMode: PolicyDeps['mtaStsMode']
  settings: {
    /** How the world reaches the API, without a slash at the end; empty where that is not known beforehand. */
    publicUrl: string
    managedDomain: string
    /** The host that takes mail, which customers' MX records name. */
    mailHost: string
    /** CIDRs whose `x-forwarded-for` is believed. */
    trustedProxies: string[]
    /** Whether there is a listener for HTTPS too, so that plain HTTP is for this machine and for /.well-known/. */
    isHttpsOn: boolean
    /** Whether certificates are ordered, whose challenges are answered here. */
    hasAcme: boolean
    maxDownloadBytes: number
    /** What requests and large answers hold together at most; a quarter of it for one organization. */
    bodyMemoryBytes: number
  }
}

/** What the dashboard needs beyond the routes of the API. */
export interface AppDeps
  extends Pick<HttpDeps, 'db' | 'clock' | 'log' | 'secretBox' | 'requestRate' | 'blobs'> {
  sessions: Sessions
  passwords: Passwords
  guard: Guard
  post: Post
  letterLimits: LetterLimits
  /** Null: there is no identity provider. */
  oidc: Oidc | null
  isSignUpOpen: boolean
  /** What an organization that somebody asks for may use once it is approved. */
  defaultLimits: Limits
  managedDomain: string
  parsePool: Parameters<typeof readCaptured>[0]['parsePool']
  /** How long the content of a send without an inbox is kept. */
  sentContentMs: number
  /** Whether mail is captured on a machine of development, whose user sees all of it. */
  showsCaptured: boolean
  /** How the world reaches the service, without a slash at the end; empty where that is not known beforehand. */
  publicUrl: string
  isDevelopment: boolean
  /** Where the built pages lie. */
  pagesFolder: string
}

/**
 * Who may ask for an operation of the dashboard's own. `none`: nobody need be signed in; `person`: whoever is; `member`: of
 * an organization; `writer`: not a viewer; `owner`.
 */
export type Admitted = 'none' | 'person' | 'member' | 'writer' | 'owner'

/** An answer that no schema serializes. */
export interface OtherResponse {
  description: string
  contentType: string | null
  /** What it carries; text or bytes of any kind where it does not say. */
  schema?: TSchema
  /** The headers of its own, each with what it holds. */
  headers?: Record<string, string>
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Set before the body is read, on every operation of the API. */
    caller: Caller
    /** What it reads with; set on every operation of an organization. */
    db: Queryable
    /** Who is signed in; set on every operation of the dashboard's own that needs it. */
    signedIn: SignedIn
    /** When its key began to be looked at, on the monotonic clock. */
    admittedMs: number
    /** How long it has waited for mail, which is no work; absent where it has not. */
    waitedMs?: number
    /** What its body holds; set on every operation that takes one. */
    holding: Holding
    /** What was made of its body beside the main thread, where that is large. */
    large?: LargeBody
  }
  interface FastifyReply {
    /** What it refuses the request by; absent where it does not. */
    errorCode?: ErrorCode
  }
  interface FastifyContextConfig {
    /** Of an operation of the dashboard's own: who may ask for it. */
    session?: Admitted
    /** What the caller's key must permit, one of several; null: nothing beyond being valid. */
    scope?: Scope | readonly Scope[] | null
    /** The largest body it takes, in bytes, or as large as the caller's messages; 64 KiB where it does not say. */
    largestBody?: number | 'message'
    /** How long it may wait before it begins to work; absent where it does not wait. */
    longestWaitMs?: number
    /** Members of its body that another operation takes. */
    elsewhere?: { names: readonly string[]; operation: string }
    /** The codes that the operation can answer with, beyond those that every one can; for its documentation. */
    refusals?: ErrorCode[]
    /** Answers that are not written as JSON, by status (`contentType` null: no body); for its documentation. */
    otherResponses?: Record<number, OtherResponse>
    /** The headers of its success that are its own, each with what it holds. */
    headers?: Record<string, string>
    /** Examples of its request and of its success, where those of their schemas do not fit; for its documentation. */
    examples?: OperationNotes['examples']
    /** Calls that the service makes because of it; for its documentation. */
    callbacks?: OperationNotes['callbacks']
  }
}
