// Passkeys: make, list and remove them, and sign in with them.
import type { FastifyReply, FastifyRequest } from 'fastify'
import Type from 'typebox'
import { ServiceError } from '../../../base/errors.ts'
import {
  addPasskey,
  offerRegistration,
  offerSignIn,
  removePasskey,
  signInByPasskey,
} from '../../../flow/people/passkeys.ts'
import { requireRecentProof } from '../../../flow/people/recent-proof.ts'
import { listPasskeys, type PasskeyRow } from '../../../store/people/passkeys.ts'
import type { Api, AppDeps } from '../../api.ts'
import { Nothing, Uuid } from '../../schemas/scalars.ts'
import { addressOf, pagesOf, siteOf } from '../asking.ts'
import {
  NewPasskey,
  Passkey,
  PasskeyAnswer,
  PasskeyBeginning,
  PasskeyList,
  WebAuthnOptions,
} from '../schemas/people.ts'
import { SessionView } from '../schemas/session.ts'
import { SealedCookie } from '../sealed-cookie.ts'
import { signIn } from '../sign-in.ts'

const tags = ['Passkeys']
const lifetimeMs = 5 * 60_000

/** The challenge that a browser must sign. `personId` is set only for a registration. */
interface Challenge {
  challenge: string
  personId: string | null
}

export function passkeyRoutes(api: Api, deps: AppDeps): void {
  const challenges = new SealedCookie<Challenge>(deps, { name: 'passkey', lifetimeMs })
  addChallenge(api, challenges)
  addSignIn(api, deps, challenges)
  addList(api, deps)
  addRegistration(api, deps, challenges)
  addCreate(api, deps, challenges)
  addRemove(api, deps)
}

/**
 * Returns the challenge that this browser was given for this purpose.
 * Security: a challenge for signing in cannot register a passkey, and the other way round.
 */
function takeChallenge(
  challenges: SealedCookie<Challenge>,
  request: FastifyRequest,
  reply: FastifyReply,
  personId: string | null,
): string {
  const taken = challenges.take(request, reply)
  if (!taken || taken.personId !== personId)
    throw new ServiceError('link_expired', 'The passkey request has expired. Try again.')
  return taken.challenge
}

function addChallenge(api: Api, challenges: SealedCookie<Challenge>): void {
  api.post(
    '/v1/passkeys/challenge',
    {
      config: { session: 'none' },
      schema: {
        operationId: 'challengePasskey',
        tags,
        summary: 'Start a sign-in with a passkey',
        querystring: Nothing,
        body: Nothing,
        response: { 200: WebAuthnOptions.ref },
      },
    },
    async (request, reply) => {
      const options = await offerSignIn(siteOf(request))
      challenges.set(reply, { challenge: options.challenge, personId: null })
      return options
    },
  )
}

function addSignIn(api: Api, deps: AppDeps, challenges: SealedCookie<Challenge>): void {
  api.post(
    '/v1/session/passkey',
    {
      config: { session: 'none', refusals: ['sign_in_failed', 'link_expired', 'too_many_attempts'] },
      schema: {
        operationId: 'signInByPasskey',
        tags,
        summary: 'Sign in with a passkey',
        querystring: Nothing,
        body: PasskeyAnswer.ref,
        response: { 200: SessionView.ref },
      },
    },
    async (request, reply) => {
      const challenge = takeChallenge(challenges, request, reply, null)
      const where = { site: siteOf(request), ip: addressOf(request) }
      const personId = await signInByPasskey(deps, { ...request.body, challenge }, where)
      return await signIn(deps, request, reply, { personId, way: 'passkey' })
    },
  )
}

function addList(api: Api, { db }: AppDeps): void {
  api.get(
    '/v1/passkeys',
    {
      config: { session: 'person' },
      schema: {
        operationId: 'listPasskeys',
        tags,
        summary: 'List your passkeys',
        querystring: Nothing,
        response: { 200: PasskeyList.ref },
      },
    },
    async ({ signedIn: { person } }) => ({ passkeys: (await listPasskeys(db, person.id)).map(present) }),
  )
}

function addRegistration(api: Api, deps: AppDeps, challenges: SealedCookie<Challenge>): void {
  api.post(
    '/v1/passkeys/registration',
    {
      config: { session: 'person', refusals: ['sign_in_failed', 'too_many_attempts'] },
      schema: {
        operationId: 'beginPasskey',
        tags,
        summary: 'Start to create a passkey',
        querystring: Nothing,
        description:
          'Needs your password if you signed in more than five minutes ago. If you have no password, sign in again first.',
        body: PasskeyBeginning.ref,
        response: { 200: WebAuthnOptions.ref },
      },
    },
    async (request, reply) => {
      const { person, session } = request.signedIn
      const who = { personId: person.id, signedInAt: session.createdAt, ip: addressOf(request) }
      await requireRecentProof(deps, who, request.body.password)
      const options = await offerRegistration(deps, person, siteOf(request))
      challenges.set(reply, { challenge: options.challenge, personId: person.id })
      return options
    },
  )
}

function addCreate(api: Api, deps: AppDeps, challenges: SealedCookie<Challenge>): void {
  api.post(
    '/v1/passkeys',
    {
      config: { session: 'person', refusals: ['link_expired', 'limit_reached', 'address_taken'] },
      schema: {
        operationId: 'createPasskey',
        tags,
        summary: 'Register a passkey that the browser created',
        querystring: Nothing,
        body: NewPasskey.ref,
        response: { 201: Passkey.ref },
      },
    },
    async (request, reply) => {
      const { person, session } = request.signedIn
      const challenge = takeChallenge(challenges, request, reply, person.id)
      const where = { site: siteOf(request), ...changeSiteOf(deps, request) }
      const by = { ...person, sessionId: session.id }
      const row = await addPasskey(deps, by, { ...request.body, challenge }, where)
      return reply.code(201).send(present(row))
    },
  )
}

function addRemove(api: Api, deps: AppDeps): void {
  api.delete(
    '/v1/passkeys/:passkeyId',
    {
      config: {
        session: 'person',
        refusals: ['not_found'],
        otherResponses: { 204: { description: 'Removed.', contentType: null } },
      },
      schema: {
        operationId: 'deletePasskey',
        tags,
        summary: 'Remove one of your passkeys',
        params: Type.Object({ passkeyId: Uuid }),
        querystring: Nothing,
      },
    },
    async (request, reply) => {
      await removePasskey(
        deps,
        request.signedIn.person,
        request.params.passkeyId,
        changeSiteOf(deps, request),
      )
      return reply.code(204).send()
    },
  )
}

function changeSiteOf(deps: AppDeps, request: FastifyRequest) {
  return { ip: addressOf(request), pages: pagesOf(deps, request) }
}

function present({ id, name, createdAt, lastUsedAt }: PasskeyRow) {
  return { id, name, createdAt: createdAt.toISOString(), lastUsedAt: lastUsedAt?.toISOString() ?? null }
}
