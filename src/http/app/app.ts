// The dashboard on the public listener: its pages, the API's operations behind a session, and its own operations.
import cookie from '@fastify/cookie'
import { FairLimit } from '../../base/fair-limit.ts'
import type { Api, AppDeps, HttpDeps } from '../api.ts'
import { addAppDocument, serveAppDocument } from '../document/openapi.ts'
import { Cursors } from '../lists.ts'
import { bySession, requireSessions } from './admission.ts'
import { serveFrame } from './frame.ts'
import { servePages } from './pages.ts'
import { accessRoutes } from './routes/access.ts'
import { auditRoutes } from './routes/audit.ts'
import { capturedRoutes } from './routes/captured.ts'
import { appInboxRoutes } from './routes/inboxes.ts'
import { invitationRoutes } from './routes/invitations.ts'
import { keyRoutes } from './routes/keys.ts'
import { lifeRoutes } from './routes/life.ts'
import { mailRoutes } from './routes/mail.ts'
import { mailListRoutes } from './routes/mail-lists.ts'
import { oidcRoutes } from './routes/oidc.ts'
import { organizationRoutes } from './routes/organization.ts'
import { passkeyRoutes } from './routes/passkeys.ts'
import { personRoutes } from './routes/person.ts'
import { sessionRoutes } from './routes/session.ts'
import { appSuppressionRoutes } from './routes/suppressions.ts'
import { keyComponents } from './schemas/keys.ts'
import { mailComponents } from './schemas/mail.ts'
import { mailListComponents } from './schemas/mail-lists.ts'
import { organizationComponents } from './schemas/organization.ts'
import { peopleComponents } from './schemas/people.ts'
import { sendingComponents } from './schemas/sending.ts'
import { sessionComponents } from './schemas/session.ts'
import { suppressionComponents } from './schemas/suppressions.ts'

const components = [
  ...sessionComponents,
  ...peopleComponents,
  ...organizationComponents,
  ...keyComponents,
  ...mailComponents,
  ...mailListComponents,
  ...sendingComponents,
  ...suppressionComponents,
]

/** `addRoutes` adds the operations of the API with the given authentication. */
export function serveApp(
  api: Api,
  deps: AppDeps,
  addRoutes: (api: Api, authenticate: HttpDeps['authenticate']) => void,
): void {
  servePages(api, deps)
  serveFrame(api)
  api.register(
    async (app: Api) => {
      await app.register(cookie)
      for (const definition of components) app.addSchema(definition)
      addAppDocument(app, deps.publicUrl)
      serveAppDocument(app)
      app.register(async (scope: Api) => {
        addRoutes(scope, bySession(deps))
        const htmlLimit = new FairLimit(1)
        mailRoutes(scope, { ...deps, htmlLimit })
        mailListRoutes(scope, deps)
        lifeRoutes(scope, { ...deps, htmlLimit })
        appInboxRoutes(scope, deps)
        appSuppressionRoutes(scope, deps)
        if (deps.showsCaptured) capturedRoutes(scope, deps)
      })
      app.register(async (scope: Api) => addOwnRoutes(scope, deps))
    },
    { prefix: '/app' },
  )
}

function addOwnRoutes(api: Api, deps: AppDeps): void {
  requireSessions(api, deps)
  sessionRoutes(api, deps)
  accessRoutes(api, deps)
  oidcRoutes(api, deps)
  passkeyRoutes(api, deps)
  personRoutes(api, deps)
  organizationRoutes(api, deps)
  invitationRoutes(api, deps)
  const cursors = new Cursors(deps.secretBox)
  keyRoutes(api, deps, cursors)
  auditRoutes(api, cursors)
}
