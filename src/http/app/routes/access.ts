// Access: available ways to sign in, sign-up, confirmation, sign-in by password, and lost passwords.

import { ServiceError } from '../../../base/errors.ts'
import { askReset, completeReset, previewReset } from '../../../flow/people/reset.ts'
import { signInByPassword } from '../../../flow/people/sign-in.ts'
import { confirm, signUp } from '../../../flow/people/sign-up.ts'
import type { Api, AppDeps } from '../../api.ts'
import { Nothing } from '../../schemas/scalars.ts'
import { addressOf, pagesOf } from '../asking.ts'
import {
  Access,
  Credentials,
  Mailed,
  NewPerson,
  ResetCompletion,
  ResetPreview,
  ResetRequest,
} from '../schemas/people.ts'
import { LinkToken, SessionView } from '../schemas/session.ts'
import { signIn } from '../sign-in.ts'

const tags = ['Access']
const noQuery = { tags, querystring: Nothing }

export function accessRoutes(api: Api, deps: AppDeps): void {
  addAccess(api, deps)
  addSignUp(api, deps)
  addConfirmation(api, deps)
  addSignIn(api, deps)
  addReset(api, deps)
  addResetPreview(api, deps)
  addResetCompletion(api, deps)
}

function addAccess(api: Api, { isSignUpOpen, oidc, isDevelopment, managedDomain }: AppDeps): void {
  api.get(
    '/v1/access',
    {
      config: { session: 'none' },
      schema: {
        ...noQuery,
        operationId: 'getAccess',
        summary: 'Show the ways to sign in',
        response: { 200: Access.ref },
      },
    },
    async () => ({
      signUp: isSignUpOpen,
      oidc: oidc && { name: oidc.name },
      development: isDevelopment,
      managedDomain,
      hasOperatorApproval: true,
    }),
  )
}

function addSignUp(api: Api, deps: AppDeps): void {
  api.post(
    '/v1/sign-up',
    {
      config: { session: 'none', refusals: ['not_found', 'too_many_attempts'] },
      schema: {
        ...noQuery,
        operationId: 'signUp',
        summary: 'Sign up',
        description:
          'Mails a link to the address. The response is the same if the address already has an account.',
        body: NewPerson.ref,
        response: { 202: Mailed.ref },
      },
    },
    async (request, reply) => {
      if (!deps.isSignUpOpen)
        throw new ServiceError('not_found', 'Sign-up is by invitation only. Ask a member to invite you.')
      const where = { ip: addressOf(request), pages: pagesOf(deps, request) }
      await signUp(deps, request.body, where)
      return reply.code(202).send({})
    },
  )
}

function addConfirmation(api: Api, deps: AppDeps): void {
  api.post(
    '/v1/confirmations',
    {
      config: { session: 'none', refusals: ['link_expired'] },
      schema: {
        ...noQuery,
        operationId: 'confirm',
        summary: 'Confirm an address with its link, and sign in',
        body: LinkToken.ref,
        response: { 200: SessionView.ref },
      },
    },
    async (request, reply) =>
      await signIn(deps, request, reply, {
        personId: await confirm(deps, request.body.token),
        way: 'confirmation',
      }),
  )
}

function addSignIn(api: Api, deps: AppDeps): void {
  api.post(
    '/v1/session',
    {
      config: { session: 'none', refusals: ['sign_in_failed', 'too_many_attempts'] },
      schema: {
        ...noQuery,
        operationId: 'signIn',
        summary: 'Sign in with a password',
        body: Credentials.ref,
        response: { 200: SessionView.ref },
      },
    },
    async (request, reply) => {
      const personId = await signInByPassword(deps, request.body, addressOf(request))
      return await signIn(deps, request, reply, { personId, way: 'password' })
    },
  )
}

function addReset(api: Api, deps: AppDeps): void {
  api.post(
    '/v1/resets',
    {
      config: { session: 'none', refusals: ['too_many_attempts'] },
      schema: {
        ...noQuery,
        operationId: 'askReset',
        summary: 'Request a password reset',
        description:
          'Mails a link to the address. If the address has no account, the response and the mail are the same, and the link explains it.',
        body: ResetRequest.ref,
        response: { 202: Mailed.ref },
      },
    },
    async (request, reply) => {
      const where = { ip: addressOf(request), pages: pagesOf(deps, request) }
      await askReset(deps, request.body.email, where)
      return reply.code(202).send({})
    },
  )
}

// POST, because a token in a query ends up in the logs of proxies.
function addResetPreview(api: Api, deps: AppDeps): void {
  api.post(
    '/v1/resets/preview',
    {
      config: { session: 'none', refusals: ['link_expired', 'sign_in_failed'] },
      schema: {
        ...noQuery,
        operationId: 'previewReset',
        summary: 'Preview the effects of a password reset',
        body: LinkToken.ref,
        response: { 200: ResetPreview.ref },
      },
    },
    async ({ body }) => {
      const { added, unlisted } = await previewReset(deps, body.token)
      return { added: added.map((one) => ({ ...one, addedAt: one.addedAt.toISOString() })), unlisted }
    },
  )
}

function addResetCompletion(api: Api, deps: AppDeps): void {
  api.post(
    '/v1/resets/complete',
    {
      config: { session: 'none', refusals: ['link_expired', 'sign_in_failed', 'too_many_attempts'] },
      schema: {
        ...noQuery,
        operationId: 'completeReset',
        summary: 'Reset the password with a link, and sign in',
        description:
          'Ends all sessions. Removes everything that the person added since the address was last verified, except for the entries in `keep`: passkeys, the identity, API keys, webhooks (disabled) and open invitations. Returns `sign_in_failed` if the address has no account, or if the account is newer than the link.',
        body: ResetCompletion.ref,
        response: { 200: SessionView.ref },
      },
    },
    async (request, reply) => {
      const personId = await completeReset(deps, request.body, {
        ip: addressOf(request),
        pages: pagesOf(deps, request),
      })
      return await signIn(deps, request, reply, { personId, way: 'reset' })
    },
  )
}
