// The types of answers that the tour reads, by their names in the OpenAPI document.
import type { Static } from 'typebox'
import type { Inbox, InboxList } from '../../http/schemas/inbox.ts'
import type { Message, MessageList } from '../../http/schemas/message.ts'
import type { DeliveryMetrics } from '../../http/schemas/metrics.ts'
import type { Refusal } from '../../http/schemas/refusal.ts'
import type { Acceptance } from '../../http/schemas/send.ts'
import type { EventList } from '../../http/schemas/submission.ts'
import type { SuppressionList } from '../../http/schemas/suppression.ts'
import type { Thread } from '../../http/schemas/thread.ts'
import type { ValidationList } from '../../http/schemas/validate.ts'
import type { WebhookWithSecret } from '../../http/schemas/webhook.ts'

/** The schemas that the document is generated from. `tests/stranger` compiles the tour with types from the document. */
export interface Schemas {
  Acceptance: Static<typeof Acceptance.ref>
  DeliveryEventList: Static<typeof EventList.ref>
  DeliveryMetrics: Static<typeof DeliveryMetrics.ref>
  ErrorBody: Static<typeof Refusal.ref>
  Inbox: Static<typeof Inbox.ref>
  InboxList: Static<typeof InboxList.ref>
  Message: Static<typeof Message.ref>
  MessageList: Static<typeof MessageList.ref>
  SuppressionList: Static<typeof SuppressionList.ref>
  Thread: Static<typeof Thread.ref>
  ValidationList: Static<typeof ValidationList.ref>
  WebhookWithSecret: Static<typeof WebhookWithSecret.ref>
}
