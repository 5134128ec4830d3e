// Invitations: owners make and withdraw them; holders of the link see and accept them.
import Type from 'typebox'
import {
  acceptInvitation,
  invite,
  previewInvitation,
  withdrawInvitation,
} from '../../../flow/people/invitations.ts'
import type { InvitationRow } from '../../../store/people/invitations.ts'
import type { Api, AppDeps } from '../../api.ts'
import { Nothing, Uuid } from '../../schemas/scalars.ts'
import { addressOf, memberOf, pagesOf } from '../asking.ts'
import { sessionToken } from '../cookies.ts'
import {
  Invitation,
  InvitationAcceptance,
  InvitationPreview,
  NewInvitation,
} from '../schemas/organization.ts'
import { LinkToken, SessionView } from '../schemas/session.ts'
import { signIn } from '../sign-in.ts'

const tags = ['Members']

export function invitationRoutes(api: Api, deps: AppDeps): void {
  addPreview(api, deps)
  addAccept(api, deps)
  addInvite(api, deps)
  addWithdraw(api, deps)
}

// POST, because a token in a query ends up in the logs of proxies.
function addPreview(api: Api, deps: AppDeps): void {
  api.post(
    '/v1/invitations/preview',
    {
      config: { session: 'none', refusals: ['link_expired'] },
      schema: {
        operationId: 'previewInvitation',
        tags,
        summary: 'Show the invitation of a link',
        querystring: Nothing,
        body: LinkToken.ref,
        response: { 200: InvitationPreview.ref },
      },
    },
    async ({ body }) => await previewInvitation(deps, body.token),
  )
}

function addAccept(api: Api, deps: AppDeps): void {
  api.post(
    '/v1/invitations/accept',
    {
      config: {
        session: 'none',
        refusals: ['link_expired', 'sign_in_failed', 'too_many_attempts', 'organization_inactive'],
      },
      schema: {
        operationId: 'acceptInvitation',
        tags,
        summary: 'Accept an invitation with its link, and sign in',
        description:
          'A person without an account gives a name and a password. A person with an account signs in first, or gives its password here.',
        querystring: Nothing,
        body: InvitationAcceptance.ref,
        response: { 200: SessionView.ref },
      },
    },
    async (request, reply) => {
      const present = sessionToken(request)
      const signedIn = present === null ? null : await deps.sessions.find(present)
      const who = { ip: addressOf(request), signedInAs: signedIn?.person.id ?? null }
      return await signIn(deps, request, reply, {
        ...(await acceptInvitation(deps, request.body, who)),
        way: 'invitation',
      })
    },
  )
}

function addInvite(api: Api, deps: AppDeps): void {
  api.post(
    '/v1/invitations',
    {
      config: {
        session: 'owner',
        refusals: ['not_an_owner', 'address_taken', 'limit_reached', 'too_many_attempts'],
      },
      schema: {
        operationId: 'invite',
        tags,
        summary: 'Invite a person',
        querystring: Nothing,
        description: 'Mails a link to the address. An earlier invitation of the address becomes invalid.',
        body: NewInvitation.ref,
        response: { 201: Invitation.ref },
      },
    },
    async (request, reply) => {
      const row = await invite(deps, memberOf(request), request.body, pagesOf(deps, request))
      return reply.code(201).send(presentInvitation(row))
    },
  )
}

function addWithdraw(api: Api, deps: AppDeps): void {
  api.delete(
    '/v1/invitations/:invitationId',
    {
      config: {
        session: 'owner',
        refusals: ['not_an_owner', 'not_found'],
        otherResponses: { 204: { description: 'Withdrawn.', contentType: null } },
      },
      schema: {
        operationId: 'withdrawInvitation',
        tags,
        summary: 'Withdraw an invitation',
        params: Type.Object({ invitationId: Uuid }),
        querystring: Nothing,
      },
    },
    async (request, reply) => {
      await withdrawInvitation(deps, memberOf(request), request.params.invitationId)
      return reply.code(204).send()
    },
  )
}

type Presented = Pick<InvitationRow, 'id' | 'email' | 'role' | 'createdAt' | 'expiresAt'>

export function presentInvitation({ id, email, role, createdAt, expiresAt }: Presented) {
  return { id, email, role, createdAt: createdAt.toISOString(), expiresAt: expiresAt.toISOString() }
}
