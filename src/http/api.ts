// Types that the routes receive: the typed Fastify instance, the parts of the service, and the caller on each request.
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

/** Returns the caller. Refuses an unknown caller. */
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
  /** Decides which URLs may be webhooks. */
  addressGuard: Parameters<typeof changeWebhook>[0]['guard']
  eventStreams: EventStreams
  messageWaits: MessageWaits
  inboxSearches: InboxSearches
  /** Finds customers' domains, to publish their MTA-STS policies in the mode `mtaStsMode`. */
  domains: PolicyDeps['domains']
  mtaStsMode: PolicyDeps['mtaStsMode']
  settings: {
    /** The public URL of the API, without a slash at the end; empty if it is not known beforehand. */
    publicUrl: string
    managedDomain: string
    /** The host that receives mail, which customers' MX records name. */
    mailHost: string
    /** CIDRs whose `x-forwarded-for` is believed. */
    trustedProxies: string[]
    /** Whether an HTTPS listener exists too, so that plain HTTP serves only this machine and /.well-known/. */
    isHttpsOn: boolean
    /** Whether certificates are ordered, so that this server answers ACME challenges. */
    hasAcme: boolean
    maxDownloadBytes: number
    /** Memory for all request bodies and large answers together, in bytes. One organization may use a quarter of it. */
    bodyMemoryBytes: number
  }
}

/** Dependencies that the dashboard adds to those of the API's routes. */
export interface AppDeps
  extends Pick<HttpDeps, 'db' | 'clock' | 'log' | 'secretBox' | 'requestRate' | 'blobs' | 'inboxSearches'> {
  sessions: Sessions
  passwords: Passwords
  guard: Guard
  post: Post
  letterLimits: LetterLimits
  /** Null: no identity provider is configured. */
  oidc: Oidc | null
  isSignUpOpen: boolean
  /** The limits that a requested organization gets when it is approved. */
  defaultLimits: Limits
  managedDomain: string
  parsePool: Parameters<typeof readCaptured>[0]['parsePool']
  /** How long the content of a send without an inbox is kept, in ms. */
  sentContentMs: number
  /** Whether mail is captured on a development machine, whose user sees all of it. */
  showsCaptured: boolean
  /** The public URL of the service, without a slash at the end; empty if it is not known beforehand. */
  publicUrl: string
  isDevelopment: boolean
  /** The folder of the built pages. */
  pagesFolder: string
}

/**
 * The callers that an operation of the dashboard admits:
 * - `none`: anyone, without signing in.
 * - `person`: any signed-in person.
 * - `member`: a member of an organization.
 * - `writer`: a member who is not a viewer.
 * - `owner`: an owner.
 */
export type Admitted = 'none' | 'person' | 'member' | 'writer' | 'owner'

/** An answer that is not serialized by a schema. */
export interface OtherResponse {
  description: string
  contentType: string | null
  /** The schema of its content. If absent, the content is text or bytes of any kind. */
  schema?: TSchema
  /** The headers that only this answer has, each with its description. */
  headers?: Record<string, string>
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Set before the body is read, on every operation of the API. */
    caller: Caller
    /** The database for this request, as `readerFor` returns it. Set on every operation of an organization. */
    db: Queryable
    /** The signed-in person; set on every dashboard operation that needs a session. */
    signedIn: SignedIn
    /** When the check of the caller's key or session began, on the monotonic clock. */
    admittedMs: number
    /** How long the request has waited for mail, which does not count as work. Absent if it has not waited. */
    waitedMs?: number
    /** The memory held for the request's body; set on every operation that takes a body. */
    holding: Holding
    /** The results of the worker thread that read the request's body, if the body is large. */
    large?: LargeBody
  }
  interface FastifyReply {
    /** The error code of a refused request; absent on success. */
    errorCode?: ErrorCode
  }
  interface FastifyContextConfig {
    /** Dashboard operations only: who may call them. */
    session?: Admitted
    /** The scope that the caller's key needs. With several scopes, any one is enough. Null: any valid key may call. */
    scope?: Scope | readonly Scope[] | null
    /** The largest body, in bytes; `message`: as large as the caller's messages. 64 KiB if absent. */
    largestBody?: number | 'message'
    /** How long the operation may wait for mail or a verdict, beyond its time limit. Absent if it does not wait. */
    longestWaitMs?: number
    /** Body members that only another operation accepts. The error for such a member names that operation. */
    elsewhere?: { names: readonly string[]; operation: string }
    /** Error codes beyond those that every operation can answer with; for its documentation. */
    refusals?: ErrorCode[]
    /** Answers that are not JSON, by status (`contentType` null: no body); for its documentation. */
    otherResponses?: Record<number, OtherResponse>
    /** The headers that only the operation's success has, each with its description. */
    headers?: Record<string, string>
    /** Examples of its request and its success, if those of their schemas do not fit; for its documentation. */
    examples?: OperationNotes['examples']
    /** Calls that the service makes because of this operation; for its documentation. */
    callbacks?: OperationNotes['callbacks']
  }
}
