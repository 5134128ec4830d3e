// Opens the thread of a message id.

import { useQuery } from '@tanstack/react-query'
import { Navigate, useParams } from '@tanstack/react-router'
import { MessageSquareDashed } from 'lucide-react'
import { ApiError, api, read } from '../../api/client.ts'
import { Empty } from '../../parts/empty.tsx'
import { ErrorNote } from '../../parts/error-note.tsx'
import { ButtonLink } from '../../parts/form/button.tsx'
import { SkeletonRows } from '../../parts/list/skeleton.tsx'
import { Page } from '../../parts/page.tsx'
import { mail } from '../../texts/mail.ts'
import { reading } from '../../texts/reading.ts'

export function OpenMessage() {
  const { messageId = '' } = useParams({ strict: false }) as { messageId?: string }
  const {
    data: message,
    error,
    refetch,
  } = useQuery({
    queryKey: ['message', messageId],
    queryFn: () => read(api.GET('/v1/messages/{messageId}', { params: { path: { messageId } } })),
  })
  if (message) {
    const { inboxId, threadId } = message
    return (
      <Navigate
        to="/mail/$inboxId/$threadId"
        params={{ inboxId, threadId }}
        search={{ message: messageId }}
        replace
      />
    )
  }
  // A malformed id is treated like an unknown one.
  if (error instanceof ApiError && (error.status === 404 || error.status === 400))
    return (
      <Empty
        icon={MessageSquareDashed}
        title={reading.messageGone}
        action={<ButtonLink to="/mail">{reading.toMail}</ButtonLink>}
      >
        {reading.threadGoneWhat}
      </Empty>
    )
  return (
    <Page title={mail.title}>
      {error ? <ErrorNote error={error} onRetry={() => void refetch()} /> : <SkeletonRows />}
    </Page>
  )
}
