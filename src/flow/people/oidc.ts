// Sign-in through an identity provider (OpenID Connect): the authorization code flow with PKCE, state and nonce.
import * as client from 'openid-client'
import type { Clock } from '../../base/clock.ts'
import { ServiceError } from '../../base/errors.ts'
import { newUuid, type PersonId } from '../../base/ids.ts'
import type { Log } from '../../base/log.ts'
import { parseEmail, sameAddressKey } from '../../mail/address.ts'
import type { Db, Tx } from '../../postgres/db.ts'
import { isInvited } from '../../store/people/invitations.ts'
import { findPersonByEmail, insertPerson, type PersonRow } from '../../store/people/people.ts'
import {
  confirmPerson,
  findPersonBySubject,
  linkSubject,
  updatePassword,
} from '../../store/people/person-credentials.ts'
import { deleteTokens } from '../../store/people/person-tokens.ts'
import { recordOwnAction } from '../audit.ts'
import { type ChangeSite, mailChange } from './notices.ts'
import type { Post } from './post.ts'

export interface OidcSettings {
  issuer: string
  clientId: string
  clientSecret: string
  /** The label of the button. */
  name: string
}

interface Deps {
  db: Db
  clock: Clock
  log: Log
  isSignUpOpen: boolean
  post: Post
}

/** The values that the response to a pending authorization must match. The browser that began it keeps them. */
export interface Pending {
  state: string
  nonce: string
  verifier: string
}

/** The provider's claims about a person. */
interface Claims {
  issuer: string
  subject: string
  email: string | null
  name: string | null
}

const knownMs = 3_600_000
const timeoutSeconds = 10

/** One identity provider. */
export class Oidc {
  readonly #deps: Deps
  readonly #settings: OidcSettings
  #found: { configuration: Promise<client.Configuration>; untilMs: number } | null = null

  constructor(deps: Deps, settings: OidcSettings) {
    this.#deps = deps
    this.#settings = settings
  }

  get name(): string {
    return this.#settings.name
  }

  /** The address to send the browser to, and the values that its return must match. */
  async begin(callback: string): Promise<{ url: string; pending: Pending }> {
    const configuration = await this.#discover()
    const pending = {
      state: client.randomState(),
      nonce: client.randomNonce(),
      verifier: client.randomPKCECodeVerifier(),
    }
    const url = client.buildAuthorizationUrl(configuration, {
      redirect_uri: callback,
      scope: 'openid email profile',
      state: pending.state,
      nonce: pending.nonce,
      code_challenge: await client.calculatePKCECodeChallenge(pending.verifier),
      code_challenge_method: 'S256',
    })
    return { url: url.href, pending }
  }

  /** The person that the provider confirmed. Throws `sign_in_failed` if it did not, or if the person may have no account. */
  async complete(
    address: URL,
    { state, nonce, verifier }: Pending,
    { ip, pages }: ChangeSite,
  ): Promise<PersonId> {
    const { db, clock, log } = this.#deps
    const configuration = await this.#discover()
    const checks = {
      expectedState: state,
      expectedNonce: nonce,
      pkceCodeVerifier: verifier,
      idTokenExpected: true,
    }
    const claims = await client
      .authorizationCodeGrant(configuration, address, checks)
      .then((tokens) => readClaims(configuration, tokens))
      .catch((error: Error) => {
        // The message names the mismatch, and neither the code nor the secret.
        log.warn({ reason: error.message }, 'sign-in through the identity provider failed')
        throw new ServiceError('sign_in_failed')
      })
    const { id, linkedTo } = await db.transaction((tx) =>
      settlePerson(tx, claims, { ip, at: clock.now(), isSignUpOpen: this.#deps.isSignUpOpen }),
    )
    const change =
      'An identity provider was linked to your account at Posthorn: who signs in there is you here.'
    if (linkedTo !== null) await mailChange(this.#deps, linkedTo, change, { ip, pages })
    return id
  }

  async #discover(): Promise<client.Configuration> {
    const nowMs = this.#deps.clock.monotonicMs()
    if (!this.#found || this.#found.untilMs < nowMs)
      this.#found = { configuration: this.#configure(), untilMs: nowMs + knownMs }
    try {
      return await this.#found.configuration
    } catch (error) {
      this.#found = null
      this.#deps.log.warn({ reason: (error as Error).message }, 'identity provider did not answer')
      throw new ServiceError('unavailable', 'The identity provider is not responding. Try again.')
    }
  }

  #configure(): Promise<client.Configuration> {
    const { issuer, clientId, clientSecret } = this.#settings
    const server = new URL(issuer)
    // The settings allow plain HTTP for loopback only.
    const plain = server.protocol === 'http:' ? [client.allowInsecureRequests] : []
    // OpenID Connect Core 3.1.3.7: tokens received over TLS need no signature check. It costs little, so we make it.
    const execute = [...plain, client.enableNonRepudiationChecks]
    return client.discovery(server, clientId, clientSecret, undefined, { execute, timeout: timeoutSeconds })
  }
}

async function readClaims(
  configuration: client.Configuration,
  tokens: client.TokenEndpointResponse & client.TokenEndpointResponseHelpers,
): Promise<Claims> {
  const claims = tokens.claims()
  if (!claims) throw new Error('no ID token came')
  const hasEmail = claims['email'] !== undefined
  const profile = hasEmail
    ? claims
    : await client.fetchUserInfo(configuration, tokens.access_token, claims.sub)
  // Security: an address that the provider has not verified could belong to somebody else.
  const email = profile['email_verified'] === true ? String(profile['email']) : ''
  const name = typeof profile['name'] === 'string' ? profile['name'] : ''
  return {
    issuer: claims.iss,
    subject: claims.sub,
    email: parseEmail(email) ? sameAddressKey(email) : null,
    name:
      name
        .replace(/\p{Cc}/gu, ' ')
        .trim()
        .slice(0, 100) || null,
  }
}

/**
 * The person for the provider's subject: known, linked by the verified address, or new if sign-up is open or the address is
 * invited. `linkedTo` is the address of an existing account that is linked now.
 */
async function settlePerson(
  tx: Tx,
  { issuer, subject, email, name }: Claims,
  { ip, at, isSignUpOpen }: { ip: string; at: Date; isSignUpOpen: boolean },
): Promise<{ id: PersonId; linkedTo: string | null }> {
  const known = await findPersonBySubject(tx, issuer, subject)
  if (known) return { id: known, linkedTo: null }
  if (email === null)
    throw new ServiceError(
      'sign_in_failed',
      'The identity provider has not verified your email address. Verify it there first.',
    )
  const found = await findPersonByEmail(tx, email)
  if (!found && !isSignUpOpen && !(await isInvited(tx, email, at)))
    throw new ServiceError(
      'sign_in_failed',
      'There is no account for this address, and sign-up is by invitation only. Ask a member to invite you.',
    )
  const person = found ?? (await addPerson(tx, { email, name: name ?? email, at }))
  if (!(await linkSubject(tx, person.id, { issuer, subject, at })))
    throw new ServiceError(
      'sign_in_failed',
      'The account is linked to another identity. Sign in with that identity.',
    )
  if (!person.confirmedAt) await proveAddress(tx, person, at)
  await recordOwnAction(tx, person, ip, { action: 'identity.linked', detail: { issuer }, at })
  return { id: person.id, linkedTo: found ? email : null }
}

async function addPerson(
  tx: Tx,
  { email, name, at }: { email: string; name: string; at: Date },
): Promise<PersonRow> {
  const row = { id: newUuid<PersonId>(), email, name, passwordHash: null, confirmedAt: at, createdAt: at }
  await insertPerson(tx, row)
  return row
}

/** Security: an earlier sign-up with the address that was never proved may be a stranger's, so its password is removed. */
async function proveAddress(tx: Tx, { id }: PersonRow, at: Date): Promise<void> {
  await confirmPerson(tx, id, at)
  await updatePassword(tx, id, null)
  await deleteTokens(tx, id, 'confirm')
}
