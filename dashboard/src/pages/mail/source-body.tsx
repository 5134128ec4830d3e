// The source of a received message.
import { api, read } from '../../api/client.ts'
import { MailSource } from '../../parts/mail/mail-source.tsx'

export function SourceBody({ messageId }: { messageId: string }) {
  const params = { path: { messageId } }
  return (
    <MailSource
      id={messageId}
      href={`/app/v1/messages/${messageId}/source`}
      open={(signal) =>
        read<unknown>(api.GET('/v1/messages/{messageId}/source', { params, parseAs: 'stream', signal }))
      }
    />
  )
}
