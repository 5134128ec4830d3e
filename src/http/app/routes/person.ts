// The signed-in person: name and password.
import { changePassword, renamePerson } from '../../../flow/people/own-account.ts'
import type { Api, AppDeps } from '../../api.ts'
import { Nothing } from '../../schemas/scalars.ts'
import { addressOf, pagesOf } from '../asking.ts'
import { PasswordChange, PersonChange } from '../schemas/people.ts'
import { SessionView } from '../schemas/session.ts'
import { showSession } from '../sign-in.ts'

const tags = ['Person']

export function personRoutes(api: Api, deps: AppDeps): void {
  api.patch(
    '/v1/person',
    {
      config: { session: 'person' },
      schema: {
        operationId: 'renamePerson',
        tags,
        summary: 'Change your name',
        querystring: Nothing,
        body: PersonChange.ref,
        response: { 200: SessionView.ref },
      },
    },
    async (request) => {
      await renamePerson(deps, request.signedIn.person, { name: request.body.name, ip: addressOf(request) })
      return await showSession(deps, request)
    },
  )
  api.put(
    '/v1/person/password',
    {
      config: {
        session: 'person',
        refusals: ['sign_in_failed', 'too_many_attempts'],
        otherResponses: { 204: { description: 'Password changed.', contentType: null } },
      },
      schema: {
        operationId: 'changePassword',
        tags,
        summary: 'Change your password',
        querystring: Nothing,
        description: 'Ends all your other sessions.',
        body: PasswordChange.ref,
      },
    },
    async (request, reply) => {
      const { person, session } = request.signedIn
      const who = {
        personId: person.id,
        session,
        ip: addressOf(request),
        pages: pagesOf(deps, request),
      }
      await changePassword(deps, who, request.body)
      return reply.code(204).send()
    },
  )
}
