// The operator's changes to an organization: approve, suspend, rename, limit, cancel its queue, delete.
import { ServiceError } from '../../../base/errors.ts'
import { deleteOrganization, previewDeletion } from '../../../flow/accounts/delete-organization.ts'
import {
  changeLimits,
  changeOrganizationStatus,
  isLimit,
  nameOrganization,
} from '../../../flow/accounts/organization.ts'
import { cancelOrganization } from '../../../flow/delivering/end-deliveries.ts'
import { findOrganization, type OrganizationRow } from '../../../store/accounts/organizations.ts'
import { requireConfirmed } from '../admission.ts'
import { type Desk, type DeskDeps, operatorOf } from '../deps.ts'
import { LongWork } from '../long-work.ts'
import {
  Approval,
  Deletion,
  NewLimits,
  NewName,
  OrganizationState,
  OrganizationParams as params,
} from '../schemas/organization.ts'
import { Cancelled } from '../schemas/queue.ts'
import { Confirmation } from '../schemas/scalars.ts'

const path = '/desk/v1/organizations/:organizationId'

type Deletions = LongWork<string, object>

export function organizationChangeRoutes(desk: Desk, deps: DeskDeps): void {
  const deletions: Deletions = new LongWork(deps.log)
  addStatus(desk, deps)
  addName(desk, deps)
  addLimits(desk, deps)
  addCancel(desk, deps)
  addDeletion(desk, deps, deletions)
}

function addStatus(desk: Desk, deps: DeskDeps): void {
  desk.post(
    `${path}/approve`,
    { schema: { params, body: Approval, response: { 200: OrganizationState } } },
    async (request) => {
      const { organizationId } = request.params
      const changes = request.body ?? {}
      return await changeOrganizationStatus(deps, organizationId, 'active', operatorOf(request), changes)
    },
  )
  desk.post(
    `${path}/suspend`,
    { schema: { params, response: { 200: OrganizationState } } },
    async (request) => {
      const { organizationId } = request.params
      return await changeOrganizationStatus(deps, organizationId, 'suspended', operatorOf(request))
    },
  )
}

function addName(desk: Desk, deps: DeskDeps): void {
  desk.patch(
    path,
    { schema: { params, body: NewName, response: { 200: OrganizationState } } },
    async (request) => {
      const { params, body } = request
      return await nameOrganization(deps, params.organizationId, body.name, operatorOf(request))
    },
  )
}

function addLimits(desk: Desk, deps: DeskDeps): void {
  desk.patch(
    `${path}/limits`,
    { schema: { params, body: NewLimits, response: { 200: OrganizationState } } },
    async (request) => {
      const { limits = {}, ...grants } = request.body
      for (const [name, value] of Object.entries(limits))
        if (!isLimit(name, value))
          throw new ServiceError(
            'invalid_request',
            `/limits/${name} must be a known limit and a whole number`,
          )
      const changes = { ...limits, ...grants }
      return await changeLimits(deps, request.params.organizationId, changes, operatorOf(request))
    },
  )
}

function addCancel(desk: Desk, deps: DeskDeps): void {
  desk.post(
    `${path}/cancel-queue`,
    { schema: { params, body: Confirmation, response: { 200: Cancelled } } },
    async (request) => {
      const { id, name } = await findNamed(deps, request.params.organizationId)
      requireConfirmed(request.body.confirm, name)
      return { cancelled: await cancelOrganization(deps, id, operatorOf(request)) }
    },
  )
}

function addDeletion(desk: Desk, deps: DeskDeps, deletions: Deletions): void {
  desk.get(
    `${path}/deletion`,
    { schema: { params, response: { 200: Deletion } } },
    async ({ params: { organizationId } }) => await presentDeletion(deps, organizationId, deletions),
  )
  desk.post(
    `${path}/deletion`,
    { schema: { params, body: Confirmation, response: { 202: Deletion } } },
    async (request, reply) => {
      const { id, name } = await findNamed(deps, request.params.organizationId)
      requireConfirmed(request.body.confirm, name)
      deletions.begin(id, (step) => deleteOrganization(deps, id, step, operatorOf(request)))
      return reply.code(202).send(await presentDeletion(deps, id, deletions))
    },
  )
}

async function findNamed({ db }: DeskDeps, given: string): Promise<OrganizationRow> {
  const row = await findOrganization(db, given)
  if (!row) throw new ServiceError('not_found', 'There is no such organization.')
  return row
}

const nothing = {
  inboxes: 0,
  messages: 0,
  submissions: 0,
  domains: 0,
  webhooks: 0,
  keys: 0,
  suppressions: 0,
}

/** For a deleted organization, returns the remembered deletion if it was started on this node. */
async function presentDeletion(deps: DeskDeps, given: string, deletions: Deletions): Promise<Deletion> {
  // Copies the state before reading the database. Otherwise the answer could show finished work and an undeleted
  // organization.
  const found = deletions.find(given.toLowerCase())
  const work = found && { ...found, steps: [...found.steps] }
  const holdings = await previewDeletion(deps, given).catch((error) => {
    if (work && error instanceof ServiceError && error.code === 'not_found') return null
    throw error
  })
  return { holdings: holdings ?? nothing, work, isGone: holdings === null }
}
