// One suppression by its address: the list of all of them is by time.
import Type from 'typebox'
import { requireWholeOrganization } from '../../../flow/caller.ts'
import { sameAddressKey } from '../../../mail/address.ts'
import { findSuppression } from '../../../store/suppressions.ts'
import type { Api } from '../../api.ts'
import { presentSuppression } from '../../present.ts'
import { Email } from '../../schemas/scalars.ts'
import { FoundSuppression } from '../schemas/sending.ts'

const Query = Type.Object({ email: Email }, { additionalProperties: false })

export function suppressionSearchRoutes(api: Api): void {
  api.get(
    '/v1/suppressions/search',
    {
      config: { scope: 'delivery:read', refusals: ['inbox_not_allowed'] },
      schema: {
        operationId: 'findSuppression',
        tags: ['Suppressions'],
        summary: 'Find the suppression of an address',
        querystring: Query,
        response: { 200: FoundSuppression.ref },
      },
    },
    async ({ caller, query, db }) => {
      requireWholeOrganization(caller)
      const row = await findSuppression(db, caller.organizationId, sameAddressKey(query.email))
      return { suppression: row && presentSuppression(row) }
    },
  )
}
