// Keeps accepted sends in memory, so that this node's deliveries need not read them back a moment later.
import type { RecentlyUsed } from '../../base/recently-used.ts'
import type { DbFault } from '../../postgres/db.ts'
import type { RawRow } from '../../store/mailbox/raws.ts'
import type { OutboundContent } from '../../store/sending/deliveries.ts'
import type { NewSend, SendVerdict } from '../../store/sending/sends.ts'

/** Contents by submission id. Undefined if other nodes deliver them. */
export type SendCache = RecentlyUsed<OutboundContent> | undefined

/**
 * Puts the content into `sendCache` before the commit that makes it claimable. Keeps it only if the commit accepts the send.
 */
export async function commitCached(
  sendCache: SendCache,
  { send, raw, sizeBytes }: { send: NewSend; raw: RawRow | null; sizeBytes: number },
  commit: () => Promise<SendVerdict | DbFault>,
): Promise<SendVerdict | DbFault> {
  const { id } = send.submission
  sendCache?.set(id, contentOf(send, raw?.bytes ?? null), sizeBytes)
  let isAccepted = false
  try {
    const verdict = await commit()
    isAccepted = 'verdict' in verdict && verdict.verdict === 'accepted'
    return verdict
  } finally {
    if (!isAccepted) sendCache?.delete(id)
  }
}

/** The content of the send's mail, as it would be read back. */
function contentOf(
  { submission, message, content, isRaw, headers }: NewSend,
  rawBytes: Buffer | null,
): OutboundContent {
  const { internetMessageId, recipients, text, html } = message ?? content!
  return {
    submissionId: submission.id,
    origin: message ? 'inbox' : 'domain',
    messageId: internetMessageId,
    inReplyTo: message?.inReplyTo ?? null,
    referenceIds: message?.referenceIds ?? [],
    sender: submission.sender,
    recipients,
    subject: submission.subject,
    text,
    html,
    attachments: message?.attachments ?? [],
    rawId: (message ?? content!).rawId,
    isRaw,
    rawBytes,
    headers: inStoredOrder(headers),
    createdAt: submission.createdAt,
  }
}

/**
 * Orders keys as PostgreSQL does in a jsonb, shorter ones first. So a retry, which reads them back, sends the same bytes.
 */
function inStoredOrder(headers: Record<string, string>): Record<string, string> {
  const byLength = (one: string, other: string) => one.length - other.length || (one < other ? -1 : 1)
  return Object.fromEntries(Object.entries(headers).sort(([one], [other]) => byLength(one, other)))
}
