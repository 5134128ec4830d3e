// Validation: one address, or up to a hundred.
import type { Api, HttpDeps } from '../api.ts'
import { Nothing } from '../schemas/scalars.ts'
import { GivenAddress, GivenAddresses, Validation, ValidationList } from '../schemas/validate.ts'

export function validationRoutes(api: Api, { validation }: HttpDeps): void {
  api.post(
    '/v1/validate',
    {
      config: { scope: 'validation:use' },
      schema: {
        operationId: 'validateAddress',
        tags: ['Validation'],
        summary: 'Validate an address',
        description: 'Checks its syntax, DNS, lists and your own deliveries. No mail is sent.',
        querystring: Nothing,
        body: GivenAddress.ref,
        response: { 200: Validation.ref },
      },
    },
    async ({ caller, body }) => {
      const [result] = await validation.validate(caller, [body.email])
      return result!
    },
  )
  api.post(
    '/v1/validate/bulk',
    {
      // A hundred texts of 320 characters, each written as two escapes.
      config: { scope: 'validation:use', largestBody: 512 * 1024 },
      schema: {
        operationId: 'validateAddresses',
        tags: ['Validation'],
        summary: 'Validate up to 100 addresses',
        description: 'A text that is not an address also gets a result.',
        querystring: Nothing,
        body: GivenAddresses.ref,
        response: { 200: ValidationList.ref },
      },
    },
    async ({ caller, body }) => ({ results: await validation.validate(caller, body.emails) }),
  )
}
