// The named schemas of the document, to which requests and answers refer.
import { announcementComponents } from './announcement.ts'
import { domainComponents } from './domain.ts'
import { inboxComponents } from './inbox.ts'
import { GivenMailbox, Mailbox } from './mailbox.ts'
import { messageComponents } from './message.ts'
import { metricsComponents } from './metrics.ts'
import { Profile } from './profile.ts'
import { Refusal } from './refusal.ts'
import { sendComponents } from './send.ts'
import { submissionComponents } from './submission.ts'
import { suppressionComponents } from './suppression.ts'
import { threadComponents } from './thread.ts'
import { validationComponents } from './validate.ts'
import { webhookComponents } from './webhook.ts'

export const components = [
  ...[Refusal, Profile, Mailbox, GivenMailbox, ...messageComponents, ...inboxComponents],
  ...[...domainComponents, ...suppressionComponents, ...webhookComponents],
  ...[
    ...submissionComponents,
    ...metricsComponents,
    ...threadComponents,
    ...sendComponents,
    ...validationComponents,
    ...announcementComponents,
  ],
]
