// The session: open it by a link, show it, switch its organization, end it; and the person's other sessions.
import Type from 'typebox'
import { writtenAddress } from '../../../base/ip-address.ts'
import { idleMs, signOut, signOutElsewhere, switchOrganization } from '../../../flow/people/sessions.ts'
import { takeSignInLink } from '../../../flow/people/sign-in-link.ts'
import { listSessions } from '../../../store/people/sessions.ts'
import type { Api, AppDeps } from '../../api.ts'
import { Nothing, Uuid } from '../../schemas/scalars.ts'
import { forgetSession } from '../cookies.ts'
import { LinkToken, SessionList, SessionView } from '../schemas/session.ts'
import { findSession, showSession, signIn } from '../sign-in.ts'

const tags = ['Session']
const gone = { 204: { description: 'Ended.', contentType: null } }

export function sessionRoutes(api: Api, deps: AppDeps): void {
  addShow(api, deps)
  addLink(api, deps)
  addSwitch(api, deps)
  addEnd(api, deps)
  addList(api, deps)
  addEndOne(api, deps)
  addEndOthers(api, deps)
}

function addShow(api: Api, deps: AppDeps): void {
  api.get(
    '/v1/session',
    {
      config: { session: 'none' },
      schema: {
        operationId: 'getSession',
        tags,
        summary: 'Show who is signed in',
        querystring: Nothing,
        // Not an error: a page asks this before it knows whether it needs a password.
        response: { 200: SessionView.ref, 204: Type.Null({ description: 'Nobody is signed in.' }) },
      },
    },
    async (request, reply) => {
      const session = await findSession(deps, request)
      return session ?? reply.code(204).send(null)
    },
  )
}

function addLink(api: Api, deps: AppDeps): void {
  api.post(
    '/v1/session/link',
    {
      config: { session: 'none', refusals: ['link_expired'] },
      schema: {
        operationId: 'signInByLink',
        tags,
        summary: 'Sign in with a one-time link',
        querystring: Nothing,
        body: LinkToken.ref,
        response: { 200: SessionView.ref },
      },
    },
    async (request, reply) => {
      const personId = await takeSignInLink(deps, request.body.token)
      return await signIn(deps, request, reply, { personId, way: 'link' })
    },
  )
}

function addSwitch(api: Api, deps: AppDeps): void {
  api.put(
    '/v1/session/organization',
    {
      config: { session: 'person', refusals: ['not_found'] },
      schema: {
        operationId: 'switchOrganization',
        tags,
        summary: 'Switch to another organization',
        querystring: Nothing,
        body: Type.Object({ organizationId: Uuid }, { additionalProperties: false }),
        response: { 200: SessionView.ref },
      },
    },
    async (request) => {
      await switchOrganization(deps, request.signedIn, request.body.organizationId)
      return await showSession(deps, request)
    },
  )
}

function addEnd(api: Api, deps: AppDeps): void {
  api.delete(
    '/v1/session',
    {
      config: { session: 'person', otherResponses: gone },
      schema: { operationId: 'signOut', tags, summary: 'Sign out', querystring: Nothing },
    },
    async ({ signedIn: { session, person }, ip }, reply) => {
      await signOut(deps, person, session.id, writtenAddress(ip))
      forgetSession(reply)
      return reply.code(204).send()
    },
  )
}

function addList(api: Api, deps: AppDeps): void {
  api.get(
    '/v1/sessions',
    {
      config: { session: 'person' },
      schema: {
        operationId: 'listSessions',
        tags,
        summary: 'List your sessions',
        querystring: Nothing,
        response: { 200: SessionList.ref },
      },
    },
    async ({ signedIn: { session } }) => {
      const sessions = await listSessions(deps.db, session.personId, new Date(deps.clock.nowMs() - idleMs))
      return {
        sessions: sessions.map(({ id, userAgent, ip, createdAt, lastUsedAt }) => ({
          id,
          userAgent,
          ip,
          current: id === session.id,
          createdAt: createdAt.toISOString(),
          lastUsedAt: lastUsedAt.toISOString(),
        })),
      }
    },
  )
}

function addEndOne(api: Api, deps: AppDeps): void {
  api.delete(
    '/v1/sessions/:sessionId',
    {
      config: { session: 'person', refusals: ['not_found'], otherResponses: gone },
      schema: {
        operationId: 'endSession',
        tags,
        summary: 'End one of your sessions',
        params: Type.Object({ sessionId: Uuid }),
        querystring: Nothing,
      },
    },
    async ({ params, signedIn: { person }, ip }, reply) => {
      await signOut(deps, person, params.sessionId, writtenAddress(ip))
      return reply.code(204).send()
    },
  )
}

function addEndOthers(api: Api, deps: AppDeps): void {
  api.delete(
    '/v1/sessions',
    {
      config: { session: 'person', otherResponses: gone },
      schema: {
        operationId: 'endOtherSessions',
        tags,
        summary: 'End all your other sessions',
        querystring: Nothing,
      },
    },
    async ({ signedIn, ip }, reply) => {
      await signOutElsewhere(deps, signedIn, writtenAddress(ip))
      return reply.code(204).send()
    },
  )
}
