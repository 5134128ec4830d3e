// Sends a draft under its own idempotency key, and counts it as sent only when the service has it on disk.
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { ApiError, api, read, type Schemas } from '../../../api/client.ts'
import { toast } from '../../../parts/toasts.ts'
import { writing } from '../../../texts/writing.ts'
import { refreshThreads } from '../refresh-threads.ts'
import type { Draft } from './draft.ts'

type Acceptance = Schemas['Acceptance']
type Attachment = Schemas['GivenAttachment']

export type Sending =
  | { kind: 'new'; inboxId: string }
  | { kind: 'reply'; threadId: string; targetMessageId: string; replyAll: boolean }

interface Given {
  draft: Draft
  files: readonly File[]
}

export function useSend(sending: Sending, onSent: (accepted: Acceptance) => void) {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: (given: Given) => send(sending, given),
    onSuccess: (accepted) => {
      const { inboxId, threadId } = accepted.message
      void queries.invalidateQueries({ queryKey: ['thread', threadId] })
      void refreshThreads(queries, inboxId)
      toast(accepted.replayed ? writing.sentBefore : writing.sent)
      onSent(accepted)
    },
  })
}

async function send(sending: Sending, { draft, files }: Given): Promise<Acceptance> {
  const header = { 'idempotency-key': draft.key }
  const attachments = await Promise.all(files.map(readFile))
  const content = {
    text: draft.text,
    ...(draft.html === null ? {} : { html: draft.html }),
    ...(attachments.length > 0 ? { attachments } : {}),
  }
  if (sending.kind === 'reply') {
    const { threadId, targetMessageId, replyAll } = sending
    const body = { targetMessageId, replyAll, ...content }
    return await read(
      api.POST('/v1/threads/{threadId}/replies', { params: { path: { threadId }, header }, body }),
    )
  }
  const { to, cc, bcc, subject } = draft
  const body = {
    to,
    ...(cc.length > 0 ? { cc } : {}),
    ...(bcc.length > 0 ? { bcc } : {}),
    subject,
    ...content,
  }
  const path = { inboxId: sending.inboxId }
  return await read(api.POST('/v1/inboxes/{inboxId}/messages', { params: { path, header }, body }))
}

async function readFile(file: File): Promise<Attachment> {
  const url = await new Promise<string>((resolve, reject) => {
    const reader = new FileReader()
    reader.onload = () => resolve(String(reader.result))
    reader.onerror = () => reject(reader.error)
    reader.readAsDataURL(file)
  })
  const [type = ''] = file.type.split(';')
  return {
    filename: file.name,
    contentType: type || 'application/octet-stream',
    content: url.slice(url.indexOf(',') + 1),
  }
}

export interface Faults {
  to?: string
  cc?: string
  bcc?: string
  subject?: string
  text?: string
  html?: string
  files?: string
  /** An error that belongs to no field. */
  other?: unknown
}

const recipientCodes = ['too_many_recipients', 'all_recipients_suppressed', 'recipient_domain_not_allowed']

/** Maps a refusal to the field that shows it. The API names the field by its path in the body. */
export function faultsOf(error: unknown): Faults {
  if (!(error instanceof ApiError)) return { other: error }
  if (error.code === 'idempotency_key_reused') return { other: new Error(writing.wasSent) }
  if (recipientCodes.includes(error.code)) return { to: error.message }
  if (error.code === 'message_too_large' || error.code === 'payload_too_large')
    return { files: error.message }
  const [, field = ''] = /^\/([a-z]+)/.exec(error.message) ?? []
  if (['to', 'cc', 'bcc', 'subject', 'text', 'html'].includes(field)) return { [field]: error.message }
  return field === 'attachments' ? { files: error.message } : { other: error }
}
