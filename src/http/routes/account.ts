// GET /v1/me: the permissions of the key.
import { findOrganization } from '../../store/accounts/organizations.ts'
import type { Api } from '../api.ts'
import { presentProfile } from '../present.ts'
import { Profile } from '../schemas/profile.ts'
import { Nothing } from '../schemas/scalars.ts'

export function accountRoutes(api: Api): void {
  api.get(
    '/v1/me',
    {
      config: { scope: null },
      schema: {
        operationId: 'getProfile',
        tags: ['Account'],
        summary: "Show this key's permissions and limits",
        description:
          'Returns the organization, the key with its restrictions, and the limits. Needs no scope.',
        querystring: Nothing,
        response: { 200: Profile.ref },
      },
    },
    async ({ caller, db }) => {
      const organization = await findOrganization(db, caller.organizationId)
      return presentProfile(caller, organization!.managedUsed)
    },
  )
}
