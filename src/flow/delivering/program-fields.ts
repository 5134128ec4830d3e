// The header fields of mail that programs send without an inbox: whom complaints count for, and how to unsubscribe.
import type { SecretBox } from '../../base/secret-box.ts'
import { unsubscribeTokenOf } from '../../mail/unsubscribe-token.ts'
import { feedbackIdOf } from '../../mail/write/feedback-id.ts'
import type { DeliveryJob } from './delivery-job.ts'
import type { SendingIdentity } from './sending-identity.ts'

interface Deps {
  secretBox: SecretBox
  publicUrl: string | null
}

type Job = Pick<DeliveryJob, 'content' | 'deliveries'>

/** None for mail from an inbox: it is a conversation, and these fields would mark it as automatic. */
export function programFields(
  deps: Deps,
  job: Job,
  { hasOneClick }: Pick<SendingIdentity, 'hasOneClick'>,
): Record<string, string> {
  const { origin, sender, headers } = job.content
  if (origin === 'inbox') return {}
  const domain = sender.email.slice(sender.email.lastIndexOf('@') + 1)
  const campaign = headers['x-campaign-id'] ?? headers['x-campaign'] ?? null
  const { organizationId } = job.deliveries[0]!
  const fields = { 'Feedback-ID': feedbackIdOf({ domain, organizationId, campaign }) }
  return hasOneClick ? { ...fields, ...unsubscribeFields(deps, job) } : fields
}

function unsubscribeFields(
  { secretBox, publicUrl }: Deps,
  { content, deliveries }: Job,
): Record<string, string> {
  const { to, cc = [], bcc = [] } = content.recipients
  // RFC 8058 3.1: the URI identifies the recipient, so mail that several recipients share has none.
  if (to.length + cc.length + bcc.length !== 1) return {}
  // RFC 8058 3.1: the URI is HTTPS.
  if (!publicUrl?.startsWith('https:')) return {}
  const { submissionId, position } = deliveries[0]!
  return {
    'List-Unsubscribe': `<${publicUrl}/unsubscribe/${unsubscribeTokenOf(secretBox, { submissionId, position })}>`,
    'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
  }
}
