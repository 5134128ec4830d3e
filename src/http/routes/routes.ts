// Adds all routes of the API, behind authentication.
import type { Api, HttpDeps } from '../api.ts'
import type { ByteBudget } from '../body/byte-budget.ts'
import { countAnswers } from '../body/read-json.ts'
import { requireCallers } from '../caller.ts'
import { Cursors } from '../lists.ts'
import { accountRoutes } from './account.ts'
import { attachmentRoutes } from './attachments.ts'
import { complaintRoutes } from './complaints.ts'
import { domainRoutes } from './domains.ts'
import { eventRoutes } from './events.ts'
import { inboxRoutes } from './inboxes.ts'
import { messageRoutes } from './messages.ts'
import { metricsRoutes } from './metrics.ts'
import { sendRoutes } from './send.ts'
import { submissionRoutes } from './submissions.ts'
import { suppressionRoutes } from './suppressions.ts'
import { threadRoutes } from './threads.ts'
import { validationRoutes } from './validate.ts'
import { webhookRoutes } from './webhooks.ts'

export function addRoutes(api: Api, deps: HttpDeps, budget: ByteBudget): void {
  requireCallers(api, deps)
  countAnswers(api, budget)
  const cursors = new Cursors(deps.secretBox)
  accountRoutes(api)
  inboxRoutes(api, deps, cursors)
  messageRoutes(api, deps, cursors)
  attachmentRoutes(api, deps)
  threadRoutes(api, deps, cursors)
  submissionRoutes(api, deps, cursors)
  suppressionRoutes(api, deps, cursors)
  complaintRoutes(api, cursors)
  sendRoutes(api, deps)
  domainRoutes(api, deps, cursors)
  metricsRoutes(api, deps)
  validationRoutes(api, deps)
  webhookRoutes(api, deps, cursors)
  eventRoutes(api, deps)
}
