// Passkeys (WebAuthn): added by a signed-in person, and used to sign in from the device that holds them.
import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server'
import type { Clock } from '../../base/clock.ts'
import { ServiceError } from '../../base/errors.ts'
import { newUuid, type PersonId, type SessionId } from '../../base/ids.ts'
import { type Db, DbFault } from '../../postgres/db.ts'
import {
  deletePasskey,
  insertPasskey,
  listPasskeys,
  lockPasskey,
  notePasskeyUse,
  type PasskeyRow,
} from '../../store/people/passkeys.ts'
import { lockPerson } from '../../store/people/person-credentials.ts'
import { recordOwnAction } from '../audit.ts'
import { requireName } from '../require-name.ts'
import { requireLiveSession } from '../require-still-changing.ts'
import type { Guard } from './guard.ts'
import { type ChangeSite, mailChange } from './notices.ts'
import type { Post } from './post.ts'

type Deps = { db: Db; clock: Clock }

/** Loaded at the first use of a passkey: the library takes a tenth of the service's start. */
const loadWebAuthn = () => import('@simplewebauthn/server')

const maxPasskeys = 20
/** EdDSA, ES256 and RS256 (RFC 9053, RFC 8812). Every authenticator has at least one of them. */
const algorithms = [-8, -7, -257]

/** The site of our pages. Passkeys are bound to its host. */
export interface Site {
  /** For example https://mail.example.com. */
  origin: string
  host: string
}

interface Person {
  id: PersonId
  email: string
  name: string
}

/** The options for a browser to make a passkey that identifies its person by itself. */
export async function offerRegistration(
  { db }: Pick<Deps, 'db'>,
  { id, email, name }: Person,
  { host }: Site,
) {
  const known = await listPasskeys(db, id)
  const { generateRegistrationOptions } = await loadWebAuthn()
  return await generateRegistrationOptions({
    rpName: 'Posthorn',
    rpID: host,
    userName: email,
    userDisplayName: name,
    userID: bytesOf(id),
    attestationType: 'none' as const,
    supportedAlgorithmIDs: algorithms,
    excludeCredentials: known.map(({ credentialId, transports }) => ({
      id: credentialId.toString('base64url'),
      transports,
    })),
    authenticatorSelection: { residentKey: 'required', userVerification: 'preferred' },
  })
}

/** Stores the passkey that the browser made for the challenge. */
export async function addPasskey(
  { db, clock, post }: Deps & { post: Post },
  { sessionId, ...person }: Person & { sessionId: SessionId },
  { name: givenName, response, challenge }: { name: string; response: object; challenge: string },
  { site, ip, pages }: { site: Site } & ChangeSite,
): Promise<PasskeyRow> {
  const name = requireName(givenName)
  const made = await readMade(response, challenge, site)
  const createdAt = clock.now()
  const row = { ...made, id: newUuid(), personId: person.id, name, createdAt }
  try {
    await db.transaction(async (tx) => {
      // Locked, so that the count is exact under parallel calls.
      await lockPerson(tx, person.id)
      await requireLiveSession(tx, sessionId)
      const { length } = await listPasskeys(tx, person.id)
      if (length >= maxPasskeys)
        throw new ServiceError(
          'limit_reached',
          `You have ${length} passkeys, which is the limit. Remove one first.`,
        )
      await insertPasskey(tx, row)
      await recordOwnAction(tx, person, ip, { action: 'passkey.added', subject: name, at: createdAt })
    })
  } catch (error) {
    if (error instanceof DbFault && error.constraint === 'passkey_credential_id_key')
      throw new ServiceError('address_taken', 'This passkey is already registered.')
    throw error
  }
  const change = 'A passkey was added to your account at Posthorn: it signs in without a password.'
  await mailChange({ clock, post }, person.email, change, { ip, pages })
  return { ...row, lastUsedAt: null }
}

async function readMade(response: object, challenge: string, { origin, host }: Site) {
  const { verifyRegistrationResponse } = await loadWebAuthn()
  const verified = await verifyRegistrationResponse({
    response: response as RegistrationResponseJSON,
    expectedChallenge: challenge,
    expectedOrigin: origin,
    expectedRPID: host,
    requireUserVerification: false,
    supportedAlgorithmIDs: algorithms,
  }).catch(() => null) // every error means that the browser's answer is invalid
  if (!verified?.verified)
    throw new ServiceError('invalid_request', 'The passkey could not be verified. Try again.')
  const { id, publicKey, counter, transports } = verified.registrationInfo.credential
  return {
    credentialId: Buffer.from(id, 'base64url'),
    publicKey: Buffer.from(publicKey),
    signCount: counter,
    transports: (transports ?? []).slice(0, 8).map((word) => String(word).slice(0, 20)),
  }
}

export async function removePasskey(
  { db, clock, post }: Deps & { post: Post },
  person: Pick<Person, 'id' | 'email'>,
  id: string,
  { ip, pages }: ChangeSite,
): Promise<void> {
  await db.transaction(async (tx) => {
    const name = await deletePasskey(tx, person.id, id)
    if (name === null) throw new ServiceError('not_found', 'There is no such passkey.')
    await recordOwnAction(tx, person, ip, { action: 'passkey.removed', subject: name, at: clock.now() })
  })
  const change = 'A passkey of your account at Posthorn was removed.'
  await mailChange({ clock, post }, person.email, change, { ip, pages })
}

/** The options for a browser to sign in with any passkey that it has for this site. */
export async function offerSignIn({ host }: Site) {
  const { generateAuthenticationOptions } = await loadWebAuthn()
  return await generateAuthenticationOptions({ rpID: host, userVerification: 'preferred' })
}

/** The person whose passkey signed the challenge. */
export async function signInByPasskey(
  { db, clock, guard }: Deps & { guard: Guard },
  { response, challenge }: { response: object; challenge: string },
  { site, ip }: { site: Site; ip: string },
): Promise<PersonId> {
  await guard.admitNetwork(ip)
  const given = response as AuthenticationResponseJSON
  const credentialId = Buffer.from(String(given.rawId ?? ''), 'base64url')
  const personId = await db.transaction(async (tx) => {
    const passkey = await lockPasskey(tx, credentialId)
    const signCount = passkey && (await verifySignature(passkey, given, challenge, site))
    if (!passkey || signCount === null) throw new ServiceError('sign_in_failed')
    await notePasskeyUse(tx, passkey.id, signCount, clock.now())
    return passkey.personId
  })
  await guard.passedFrom(ip)
  return personId
}

/** The authenticator's counter. Null unless the signature is the passkey's and the counter has not gone back. */
async function verifySignature(
  { credentialId, publicKey, signCount, personId }: PasskeyRow,
  response: AuthenticationResponseJSON,
  challenge: string,
  { origin, host }: Site,
): Promise<number | null> {
  const credential = {
    id: credentialId.toString('base64url'),
    publicKey: new Uint8Array(publicKey),
    counter: signCount,
  }
  const { verifyAuthenticationResponse } = await loadWebAuthn()
  const verified = await verifyAuthenticationResponse({
    response,
    credential,
    expectedChallenge: challenge,
    expectedOrigin: origin,
    expectedRPID: host,
    requireUserVerification: false,
  }).catch(() => null) // as above; includes a counter that went back, the sign of a copied device
  if (!verified?.verified) return null
  // WebAuthn 7.2, step 6: the user handle, if present, names the same person.
  const { userHandle: namedPerson } = response.response
  if (namedPerson && !Buffer.from(namedPerson, 'base64url').equals(bytesOf(personId))) return null
  return verified.authenticationInfo.newCounter
}

/** A person's handle for authenticators: 16 bytes that reveal nothing about them (WebAuthn 14.6.1). */
function bytesOf(id: PersonId): Buffer<ArrayBuffer> {
  return Buffer.from(id.replaceAll('-', ''), 'hex') as Buffer<ArrayBuffer>
}
