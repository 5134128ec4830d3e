// Keys: list, make, rotate and revoke them.

import type { FastifyRequest } from 'fastify'
import type { Static } from 'typebox'
import Type from 'typebox'
import type { InboxId } from '../../../base/ids.ts'
import {
  createMemberKey,
  type MemberKeyInput,
  revokeMemberKey,
  rotateKey,
} from '../../../flow/accounts/member-keys.ts'
import { type KeyRow, listUsedKeys, type UsedKeyRow } from '../../../store/accounts/keys.ts'
import type { Api, AppDeps } from '../../api.ts'
import { byId, type Cursors, pageQuery, readLimit } from '../../lists.ts'
import { Nothing } from '../../schemas/scalars.ts'
import { addressOf, organizationOf } from '../asking.ts'
import { type Key, KeyList, KeyParams, KeyRotation, KeyWithSecret, NewKey } from '../schemas/keys.ts'

const tags = ['Keys']

export function keyRoutes(api: Api, deps: AppDeps, cursors: Cursors): void {
  addList(api, cursors)
  addCreate(api, deps)
  addRotate(api, deps)
  addRevoke(api, deps)
}

function addList(api: Api, cursors: Cursors): void {
  api.get(
    '/v1/keys',
    {
      preValidation: readLimit,
      config: { session: 'member', refusals: ['invalid_cursor'] },
      schema: {
        operationId: 'listKeys',
        tags,
        summary: 'List keys',
        description: 'Newest first, including revoked keys.',
        querystring: Type.Object(pageQuery, { additionalProperties: false }),
        response: { 200: KeyList.ref },
      },
    },
    async (request) => {
      const { id: organizationId } = organizationOf(request)
      const name = { list: 'keys', organizationId }
      const { page, nextCursor } = await cursors.page(name, request.query, byId, (before, limit) =>
        listUsedKeys(request.db, organizationId, before, limit),
      )
      return { keys: page.map(present), nextCursor }
    },
  )
}

function addCreate(api: Api, deps: AppDeps): void {
  api.post(
    '/v1/keys',
    {
      config: { session: 'writer', refusals: ['not_found', 'limit_reached'] },
      schema: {
        operationId: 'createKey',
        tags,
        summary: 'Create a key',
        querystring: Nothing,
        description:
          'Returns the secret, which is shown only once. The organization must be approved. Returns 403 for kind server unless the operator has granted the organization server keys (`serverKeys` of the session).',
        body: NewKey.ref,
        response: { 201: KeyWithSecret.ref },
      },
    },
    async (request, reply) => {
      const { key, secret } = await createMemberKey(deps, actingFor(request), inputOf(request.body))
      return reply.code(201).send({ key: presentNew(key, request), secret })
    },
  )
}

function inputOf(body: Static<typeof NewKey.definition>): MemberKeyInput {
  const { name, scopes, inboxIds, allowedIps, allowedRecipientDomains } = body
  return {
    name,
    kind: body.kind ?? 'dashboard',
    scopes,
    inboxIds: (inboxIds as InboxId[] | null | undefined) ?? null,
    allowedIps: allowedIps ?? null,
    allowedRecipientDomains: allowedRecipientDomains ?? null,
    confirmNewRecipients: body.confirmNewRecipients ?? false,
    sendMode: body.sendMode ?? 'new_and_reply',
    requestsPerMinute: body.requestsPerMinute ?? null,
    expiresInDays: body.expiresInDays ?? 30,
  }
}

function addRotate(api: Api, deps: AppDeps): void {
  api.post(
    '/v1/keys/:keyId/rotate',
    {
      config: { session: 'writer', refusals: ['not_found', 'limit_reached'] },
      schema: {
        operationId: 'rotateKey',
        tags,
        summary: 'Create a copy of a key',
        querystring: Nothing,
        description:
          'The new key has the same kind, scopes and restrictions. The old key stays valid until it is revoked.',
        params: KeyParams,
        body: KeyRotation.ref,
        response: { 201: KeyWithSecret.ref },
      },
    },
    async (request, reply) => {
      const { key, secret } = await rotateKey(
        deps,
        actingFor(request),
        request.params.keyId,
        request.body.name,
      )
      return reply.code(201).send({ key: presentNew(key, request), secret })
    },
  )
}

function addRevoke(api: Api, deps: AppDeps): void {
  api.delete(
    '/v1/keys/:keyId',
    {
      config: {
        session: 'writer',
        refusals: ['not_found'],
        otherResponses: { 204: { description: 'Revoked.', contentType: null } },
      },
      schema: {
        operationId: 'revokeKey',
        tags,
        summary: 'Revoke a key',
        params: KeyParams,
        querystring: Nothing,
      },
    },
    async (request, reply) => {
      await revokeMemberKey(deps, actingFor(request), request.params.keyId)
      return reply.code(204).send()
    },
  )
}

function actingFor(request: FastifyRequest) {
  const { person, session } = request.signedIn
  const { id: organizationId, keyId } = organizationOf(request)
  const actor = { name: person.email, ip: addressOf(request) }
  return { organizationId, personId: person.id, keyId, sessionId: session.id, actor }
}

function presentNew(row: KeyRow, { signedIn: { person } }: FastifyRequest) {
  return present({ ...row, lastUsedAt: null, maker: person })
}

function present(row: Omit<UsedKeyRow, 'ownRequestsPerMinute'>): Static<typeof Key.definition> {
  const { id, name, kind, scopes, inboxIds, allowedIps, sendMode, allowedRecipientDomains } = row
  return {
    id,
    name,
    kind,
    scopes,
    inboxIds,
    allowedIps,
    sendMode,
    allowedRecipientDomains,
    confirmNewRecipients: row.confirmNewRecipients,
    requestsPerMinute: row.requestsPerMinute,
    expiresAt: row.expiresAt?.toISOString() ?? null,
    createdAt: row.createdAt.toISOString(),
    revokedAt: row.revokedAt?.toISOString() ?? null,
    lastUsedAt: row.lastUsedAt?.toISOString() ?? null,
    madeBy: row.maker && { name: row.maker.name, email: row.maker.email },
  }
}
