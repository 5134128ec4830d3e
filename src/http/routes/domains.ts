// Domains: register, list, show and verify them, rotate their keys, print their zone, delete them.
import Type from 'typebox'
import { deleteDomain } from '../../flow/domains/delete-domain.ts'
import { readDomain, readDomainPage, readZone } from '../../flow/domains/read-domains.ts'
import { registerDomain } from '../../flow/domains/register-domain.ts'
import { rotateDkim } from '../../flow/domains/rotate-dkim.ts'
import { verifyDomain } from '../../flow/domains/verify-domain.ts'
import { normalizeDomain, trimDomain } from '../../mail/domain-name.ts'
import type { Api, HttpDeps } from '../api.ts'
import { RequestFault } from '../body/request-fault.ts'
import type { ErrorCode } from '../errors.ts'
import { byId, type Cursors, pageQuery, readLimit } from '../lists.ts'
import { Domain, DomainCheck, DomainList, DomainParams, NewDomain, zoneExample } from '../schemas/domain.ts'
import { Nothing } from '../schemas/scalars.ts'

const ofOne: { scope: 'domain:manage'; refusals: ErrorCode[] } = {
  scope: 'domain:manage',
  refusals: ['inbox_not_allowed', 'not_found'],
}
const tags = ['Domains']

export function domainRoutes(api: Api, deps: HttpDeps, cursors: Cursors): void {
  addRegister(api, deps)
  addList(api, deps, cursors)
  addShow(api, deps)
  addVerify(api, deps)
  addRotate(api, deps)
  addZone(api, deps)
  addDelete(api, deps)
}

function addRegister(api: Api, { db, clock, secretBox, mtaStsMode, settings }: HttpDeps): void {
  const { managedDomain, mailHost } = settings
  api.post(
    '/v1/domains',
    {
      // The length limit applies to the name, not to the characters around it.
      preValidation: async ({ body }) => {
        const asked = body as { domain?: unknown } | null | undefined
        if (typeof asked?.domain !== 'string') return
        const trimmed = trimDomain(asked.domain)
        asked.domain = trimmed
        // The domain check explains a wrong name better than the pattern does.
        const name = normalizeDomain(trimmed)
        if (name.status === 'refused') throw new RequestFault('invalid_request', `/domain ${name.expected}`)
      },
      config: {
        scope: 'domain:manage',
        refusals: ['inbox_not_allowed', 'limit_reached', 'domain_taken'],
      },
      schema: {
        operationId: 'registerDomain',
        tags,
        summary: 'Register a domain',
        description:
          'Returns the records to publish. If you already registered the domain, returns that domain.',
        querystring: Nothing,
        body: NewDomain.ref,
        response: { 201: Domain.ref },
      },
    },
    async ({ caller, body }, reply) => {
      const deps = { db, clock, secretBox, managedDomain, mailHost, mtaStsMode }
      return reply.code(201).send(await registerDomain(deps, caller, body.domain))
    },
  )
}

function addList(api: Api, { mtaStsMode, settings: { mailHost } }: HttpDeps, cursors: Cursors): void {
  api.get(
    '/v1/domains',
    {
      preValidation: readLimit,
      config: { scope: 'domain:manage', refusals: ['invalid_cursor', 'inbox_not_allowed'] },
      schema: {
        operationId: 'listDomains',
        tags,
        summary: 'List domains',
        description: 'Newest first.',
        querystring: Type.Object(pageQuery, { additionalProperties: false }),
        response: { 200: DomainList.ref },
      },
    },
    async ({ caller, query, db }) => {
      const name = { list: 'domains', organizationId: caller.organizationId }
      const { page, nextCursor } = await cursors.page(name, query, byId, (before, limit) =>
        readDomainPage({ db, mailHost, mtaStsMode }, caller, before, limit),
      )
      return { domains: page, nextCursor }
    },
  )
}

function addShow(api: Api, { mtaStsMode, settings: { mailHost } }: HttpDeps): void {
  api.get(
    '/v1/domains/:domainId',
    {
      config: ofOne,
      schema: {
        operationId: 'getDomain',
        tags,
        summary: 'Show a domain',
        description: 'Returns the records to publish and the result of the newest check.',
        params: DomainParams,
        querystring: Nothing,
        response: { 200: Domain.ref },
      },
    },
    async ({ caller, params, db }) => await readDomain({ db, mailHost, mtaStsMode }, caller, params.domainId),
  )
}

function addVerify(api: Api, { db, clock, resolver, mtaStsMode, settings: { mailHost } }: HttpDeps): void {
  api.post(
    '/v1/domains/:domainId/verify',
    {
      config: ofOne,
      schema: {
        operationId: 'verifyDomain',
        tags,
        summary: 'Verify a domain',
        description:
          "Looks up the domain's records now, for up to ten seconds. Sending and receiving are verified independently.",
        params: DomainParams,
        querystring: Nothing,
        response: { 200: DomainCheck.ref },
      },
    },
    async ({ caller, params }) => {
      const domain = await verifyDomain(
        { db, clock, resolver, mailHost, mtaStsMode },
        caller,
        params.domainId,
      )
      return { domain, checks: domain.records, capabilities: domain.capabilities }
    },
  )
}

function addRotate(api: Api, { db, clock, secretBox, mtaStsMode, settings: { mailHost } }: HttpDeps): void {
  api.post(
    '/v1/domains/:domainId/rotate-dkim',
    {
      config: ofOne,
      schema: {
        operationId: 'rotateDkim',
        tags,
        summary: 'Rotate the DKIM keys of a domain',
        description:
          'The new keys sign mail once their records are found in DNS. The old keys stay listed for seven days after that.',
        params: DomainParams,
        querystring: Nothing,
        response: { 200: Domain.ref },
      },
    },
    async ({ caller, params }) =>
      await rotateDkim({ db, clock, secretBox, mailHost, mtaStsMode }, caller, params.domainId),
  )
}

function addZone(api: Api, { mtaStsMode, settings: { mailHost } }: HttpDeps): void {
  const contentType = 'text/plain; charset=utf-8'
  api.get(
    '/v1/domains/:domainId/zone',
    {
      config: {
        ...ofOne,
        otherResponses: {
          200: { description: 'A fragment of a BIND zone file.', contentType: 'text/plain' },
        },
        examples: { response: { zone: zoneExample } },
      },
      schema: {
        operationId: 'getDomainZone',
        tags,
        summary: 'Download the records of a domain as a zone fragment',
        description: "A comment before each kind of record explains its effect on the domain's mail.",
        params: DomainParams,
        querystring: Nothing,
      },
    },
    async ({ caller, params, db }, reply) => {
      const zone = await readZone({ db, mailHost, mtaStsMode }, caller, params.domainId)
      return reply.header('content-type', contentType).send(zone)
    },
  )
}

function addDelete(api: Api, { db, clock }: HttpDeps): void {
  api.delete(
    '/v1/domains/:domainId',
    {
      config: {
        scope: 'domain:manage',
        refusals: ['inbox_not_allowed', 'domain_in_use'],
        otherResponses: { 204: { description: 'Deleted.', contentType: null } },
      },
      schema: {
        operationId: 'deleteDomain',
        tags,
        summary: 'Delete a domain',
        description: "Erases the domain's keys and cancels its waiting deliveries.",
        params: DomainParams,
        querystring: Nothing,
      },
    },
    async ({ caller, params }, reply) => {
      await deleteDomain({ db, clock }, caller, params.domainId)
      return reply.code(204).send()
    },
  )
}
