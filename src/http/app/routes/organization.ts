// Organizations and their members: apply for and rename an organization; list, promote and remove members.
import Type from 'typebox'
import { readMade } from '../../../flow/people/made.ts'
import { changeRole, removeMember } from '../../../flow/people/members.ts'
import { askAccess, rename } from '../../../flow/people/organizations.ts'
import { listInvitations } from '../../../store/people/invitations.ts'
import { listMembers } from '../../../store/people/members.ts'
import type { Api, AppDeps } from '../../api.ts'
import { Nothing, Uuid } from '../../schemas/scalars.ts'
import { addressOf, memberOf, organizationOf } from '../asking.ts'
import { Made, MemberList, madeChoice, OrganizationName, RoleChange } from '../schemas/organization.ts'
import { SessionView } from '../schemas/session.ts'
import { showSession } from '../sign-in.ts'
import { presentInvitation } from './invitations.ts'

const tags = ['Members']
const MemberParams = Type.Object({ personId: Uuid })

export function organizationRoutes(api: Api, deps: AppDeps): void {
  addAsk(api, deps)
  addRename(api, deps)
  addMembers(api, deps)
  addMade(api, deps)
  addRole(api, deps)
  addRemove(api, deps)
}

function addAsk(api: Api, deps: AppDeps): void {
  api.post(
    '/v1/organizations',
    {
      config: { session: 'person', refusals: ['limit_reached'] },
      schema: {
        operationId: 'askAccess',
        tags,
        summary: 'Request access for an organization',
        querystring: Nothing,
        description:
          'Creates the organization with you as its owner. It then waits for approval by the operator. Your session switches to it.',
        body: OrganizationName.ref,
        response: { 201: SessionView.ref },
      },
    },
    async (request, reply) => {
      const { person, session } = request.signedIn
      const by = { personId: person.id, sessionId: session.id, email: person.email, ip: addressOf(request) }
      await askAccess(deps, by, request.body.name)
      return reply.code(201).send(await showSession(deps, request))
    },
  )
}

function addRename(api: Api, deps: AppDeps): void {
  api.patch(
    '/v1/organization',
    {
      config: { session: 'owner', refusals: ['not_an_owner', 'not_found'] },
      schema: {
        operationId: 'renameOrganization',
        tags,
        summary: 'Rename the organization',
        querystring: Nothing,
        body: OrganizationName.ref,
        response: { 200: SessionView.ref },
      },
    },
    async (request) => {
      await rename(deps, memberOf(request), request.body.name)
      return await showSession(deps, request)
    },
  )
}

function addMembers(api: Api, { clock }: AppDeps): void {
  api.get(
    '/v1/members',
    {
      config: { session: 'member' },
      schema: {
        operationId: 'listMembers',
        tags,
        summary: 'List members and invitations',
        querystring: Nothing,
        response: { 200: MemberList.ref },
      },
    },
    async (request) => {
      const { id } = organizationOf(request)
      const [members, invitations] = await Promise.all([
        listMembers(request.db, id),
        listInvitations(request.db, id, clock.now()),
      ])
      return {
        members: members.map(({ createdAt, lastSeenAt, ...member }) => ({
          ...member,
          createdAt: createdAt.toISOString(),
          lastSeenAt: lastSeenAt?.toISOString() ?? null,
        })),
        invitations: invitations.map(presentInvitation),
      }
    },
  )
}

function addMade(api: Api, deps: AppDeps): void {
  api.get(
    '/v1/members/:personId/made',
    {
      config: { session: 'member', refusals: ['not_an_owner', 'not_found'] },
      schema: {
        operationId: 'listMade',
        tags,
        summary: 'List what a member created',
        description: 'Owners see this for all members, others only for themselves.',
        params: MemberParams,
        querystring: Nothing,
        response: { 200: Made.ref },
      },
    },
    async (request) => {
      const by = { ...memberOf(request), role: organizationOf(request).role }
      const { keys, webhooks, invitations } = await readMade(
        { db: request.db, clock: deps.clock },
        by,
        request.params.personId,
      )
      return {
        keys: keys.map(({ createdAt, expiresAt, ...key }) => ({
          ...key,
          createdAt: createdAt.toISOString(),
          expiresAt: expiresAt?.toISOString() ?? null,
        })),
        webhooks: webhooks.map((row) => ({ ...row, createdAt: row.createdAt.toISOString() })),
        invitations: invitations.map(presentInvitation),
      }
    },
  )
}

function addRole(api: Api, deps: AppDeps): void {
  api.patch(
    '/v1/members/:personId',
    {
      config: {
        session: 'owner',
        refusals: ['not_an_owner', 'not_found', 'last_owner'],
        otherResponses: { 204: { description: 'Role changed.', contentType: null } },
      },
      schema: {
        operationId: 'changeRole',
        tags,
        summary: 'Change the role of a member',
        description:
          'Members cannot invite, and viewers cannot create anything. Items that the member can no longer create are ended.',
        params: MemberParams,
        querystring: Nothing,
        body: RoleChange.ref,
      },
    },
    async (request, reply) => {
      const { role, made = 'end' } = request.body
      await changeRole(deps, memberOf(request), request.params.personId, { role, made })
      return reply.code(204).send()
    },
  )
}

function addRemove(api: Api, deps: AppDeps): void {
  api.delete(
    '/v1/members/:personId',
    {
      config: {
        session: 'member',
        refusals: ['not_an_owner', 'not_found', 'last_owner'],
        otherResponses: { 204: { description: 'Removed.', contentType: null } },
      },
      schema: {
        operationId: 'removeMember',
        tags,
        summary: 'Remove a member, or leave',
        description:
          'Owners can remove anyone. All members can remove themselves. Keys, webhooks and invitations that the member created are ended.',
        params: MemberParams,
        querystring: Type.Object(
          { made: Type.Optional({ ...madeChoice, default: 'end' as const }) },
          { additionalProperties: false },
        ),
      },
    },
    async (request, reply) => {
      await removeMember(deps, memberOf(request), request.params.personId, request.query.made ?? 'end')
      return reply.code(204).send()
    },
  )
}
