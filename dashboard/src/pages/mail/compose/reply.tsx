// A reply, written below the conversation, whose recipients the service determines.
import { useQuery } from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'
import { Card } from '../../../parts/card.tsx'
import { Checkbox } from '../../../parts/form/field.tsx'
import { Loaded } from '../../../parts/loaded.tsx'
import { toast } from '../../../parts/toasts.ts'
import { reading } from '../../../texts/reading.ts'
import { writing } from '../../../texts/writing.ts'
import { type Mailbox, type Message, replyPlanQuery } from '../mail-queries.ts'
import { useGo, usePlace } from '../place.ts'
import { withoutTwins } from './addresses.ts'
import { useDraft } from './draft.ts'
import { Letter } from './letter.tsx'
import { type Faults, faultsOf, useSend } from './send.ts'

const begin = {}

export function Reply({ target, everyone }: { target: Message; everyone: 'sender' | 'all' }) {
  const { id, threadId } = target
  const { inboxId } = usePlace()
  const go = useGo()
  const frame = useRef<HTMLDivElement>(null)
  const state = useDraft(`${id}.reply`, begin)
  const [missing, setMissing] = useState<Faults>({})
  const close = () => go({ inboxId, threadId })
  const sending = useSend(
    { kind: 'reply', threadId, targetMessageId: id, replyAll: everyone === 'all' },
    () => {
      state.forget()
      close()
    },
  )
  useEffect(() => {
    frame.current?.scrollIntoView({ block: 'end' })
  }, [])
  const send = () => {
    const { text, html } = state.draft
    const found = text.trim() === '' && !html?.trim() ? { text: writing.noText } : {}
    setMissing(found)
    if (!('text' in found)) sending.mutate({ draft: state.draft, files: state.files })
  }
  const faults = { ...faultsOf(sending.error), ...missing }
  return (
    <div ref={frame} className="scroll-mb-6">
      <Card>
        <Letter
          label={everyone === 'all' ? writing.replyAll : writing.reply}
          state={state}
          faults={faults}
          isSending={sending.isPending}
          onSend={send}
          onDiscard={() => {
            state.forget()
            close()
            toast(writing.discarded)
          }}
          focus="text"
        >
          <Whom target={target} everyone={everyone} fault={faults.to} />
        </Letter>
      </Card>
    </div>
  )
}

function Whom({
  target,
  everyone,
  fault,
}: {
  target: Message
  everyone: 'sender' | 'all'
  fault: string | undefined
}) {
  const { id, threadId } = target
  const { inboxId } = usePlace()
  const go = useGo()
  const query = useQuery(replyPlanQuery(id))
  return (
    <Loaded query={query} waiting={<p className="h-11" />}>
      {(plan) => (
        <div className="grid gap-1">
          <p className="font-medium break-words">{plan.subject}</p>
          <Addressees {...plan[everyone]} />
          {fault && (
            <p role="alert" className="text-sm text-bad">
              {fault}
            </p>
          )}
          {plan.all.cc.length > 0 && (
            <Checkbox
              label={writing.replyAll}
              checked={everyone === 'all'}
              onChange={(all) => go({ inboxId, threadId, compose: all ? 'all' : 'reply', to: id })}
            />
          )}
        </div>
      )}
    </Loaded>
  )
}

function Addressees({ to, cc }: { to: Mailbox[]; cc: Mailbox[] }) {
  const written = (mailboxes: Mailbox[]) =>
    withoutTwins(mailboxes)
      .map(({ name, email }) => (name ? `${name} <${email}>` : email))
      .join(', ')
  if (to.length === 0) return <p className="text-sm text-bad">{writing.noReplyRecipient}</p>
  return (
    <p className="text-sm break-words text-muted">
      {reading.to} {written(to)}
      {cc.length > 0 && ` · ${reading.cc} ${written(cc)}`}
    </p>
  )
}
