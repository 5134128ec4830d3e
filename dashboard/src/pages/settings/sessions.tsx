// The sessions of a person, and how to end them.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { MonitorSmartphone } from 'lucide-react'
import { useState } from 'react'
import { api, read, type Schemas } from '../../api/client.ts'
import { Badge } from '../../parts/badge.tsx'
import { Card } from '../../parts/card.tsx'
import { wordsOf } from '../../parts/error-note.tsx'
import { Button } from '../../parts/form/button.tsx'
import { Confirm } from '../../parts/form/confirm.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { Time } from '../../parts/time.tsx'
import { toast } from '../../parts/toasts.ts'
import { settings } from '../../texts/settings.ts'
import { deviceOf } from './device.ts'

const texts = settings.sessions
const queryKey = ['sessions']
type Session = Schemas['SessionList']['sessions'][number]

export function Sessions() {
  const [isAsking, setIsAsking] = useState(false)
  const query = useQuery({ queryKey, queryFn: () => read(api.GET('/v1/sessions')) })
  const hasOthers = (query.data?.sessions.length ?? 0) > 1
  return (
    <Card
      title={texts.title}
      lead={texts.lead}
      flush
      actions={
        hasOthers && (
          <Button size="small" variant="danger" onClick={() => setIsAsking(true)}>
            {texts.endOthers}
          </Button>
        )
      }
    >
      <Loaded query={query}>
        {({ sessions }) => (
          <ul className="divide-y">
            {sessions.map((session) => (
              <SessionRow key={session.id} session={session} />
            ))}
          </ul>
        )}
      </Loaded>
      {isAsking && <EndOthers onClose={() => setIsAsking(false)} />}
    </Card>
  )
}

function SessionRow({ session: { id, current, userAgent, ip, lastUsedAt } }: { session: Session }) {
  const queries = useQueryClient()
  const device = deviceOf(userAgent)
  const { mutate, isPending } = useMutation({
    mutationFn: () => read(api.DELETE('/v1/sessions/{sessionId}', { params: { path: { sessionId: id } } })),
    onSuccess: async () => {
      toast(texts.ended)
      await queries.invalidateQueries({ queryKey })
    },
    onError: (error) => toast(wordsOf(error).title, 'bad'),
  })
  return (
    <li className="flex items-center gap-3 px-4 py-2.5 sm:px-5">
      <MonitorSmartphone size={18} className="shrink-0 text-faint" aria-hidden />
      <div className="min-w-0 flex-1">
        <p className="truncate font-medium" title={userAgent}>
          {device}
        </p>
        <p className="text-sm text-faint">
          {texts.lastUsed} <Time value={lastUsedAt} />, {texts.from} {ip}
        </p>
      </div>
      {current ? (
        <Badge tone="good">{texts.current}</Badge>
      ) : (
        <Button size="small" busy={isPending} aria-label={texts.endOne(device)} onClick={() => mutate()}>
          {texts.end}
        </Button>
      )}
    </li>
  )
}

function EndOthers({ onClose }: { onClose: () => void }) {
  const queries = useQueryClient()
  return (
    <Confirm
      onClose={onClose}
      title={texts.endOthersTitle}
      deed={texts.endOthers}
      change={() => read(api.DELETE('/v1/sessions'))}
      onDone={async () => {
        onClose()
        toast(texts.endedOthers)
        await queries.invalidateQueries({ queryKey })
      }}
    >
      {texts.endOthersWhat}
    </Confirm>
  )
}
