// The dialog for a message that starts a conversation.
import { useQuery } from '@tanstack/react-query'
import { useMemo, useState } from 'react'
import { Button } from '../../../parts/form/button.tsx'
import { Dialog } from '../../../parts/form/dialog.tsx'
import { TextField } from '../../../parts/form/field.tsx'
import { toast } from '../../../parts/toasts.ts'
import { reading } from '../../../texts/reading.ts'
import { writing } from '../../../texts/writing.ts'
import { inboxQuery, limitsQuery } from '../mail-queries.ts'
import { useGo, usePlace } from '../place.ts'
import { readAddresses } from './addresses.ts'
import { type DraftState, useDraft } from './draft.ts'
import { Letter } from './letter.tsx'
import { RecipientsField } from './recipients-field.tsx'
import { type Faults, faultsOf, useSend } from './send.ts'

export function NewMessage({ inboxId }: { inboxId: string }) {
  const { threadId, rcpt = '' } = usePlace()
  const go = useGo()
  const begin = useMemo(() => ({ to: readAddresses(rcpt).mailboxes }), [rcpt])
  const state = useDraft(`${inboxId}.new${rcpt && `.${rcpt}`}`, begin)
  const [missing, setMissing] = useState<Faults>({})
  const sending = useSend({ kind: 'new', inboxId }, ({ message }) => {
    state.forget()
    go({ inboxId, threadId: message.threadId })
  })
  const { data: inbox } = useQuery(inboxQuery(inboxId))
  const most = useQuery(limitsQuery).data?.platformLimits.recipientsPerMessage
  const close = () => go({ inboxId, threadId })
  const send = () => {
    const found = missingIn(state, most)
    setMissing(found)
    if (Object.keys(found).length === 0) sending.mutate({ draft: state.draft, files: state.files })
  }
  const faults = { ...faultsOf(sending.error), ...missing }
  return (
    <Dialog
      open
      onClose={close}
      width="large"
      title={writing.compose}
      lead={inbox && writing.composeFrom(inbox.address)}
    >
      <Letter
        label={writing.compose}
        state={state}
        faults={faults}
        isSending={sending.isPending}
        onSend={send}
        onDiscard={() => {
          state.forget()
          close()
          toast(writing.discarded)
        }}
        {...(begin.to.length > 0 ? { focus: 'text' as const } : {})}
      >
        <Addressing state={state} faults={faults} />
      </Letter>
    </Dialog>
  )
}

function missingIn({ draft }: DraftState, most = Number.POSITIVE_INFINITY): Faults {
  const count = draft.to.length + draft.cc.length + draft.bcc.length
  return {
    ...(draft.to.length === 0 ? { to: writing.noRecipient } : {}),
    ...(count > most ? { to: writing.tooManyRecipients(most) } : {}),
    ...(draft.subject.trim() === '' ? { subject: writing.noSubjectGiven } : {}),
    ...(draft.text.trim() === '' && !draft.html?.trim() ? { text: writing.noText } : {}),
  }
}

function Addressing({ state: { draft, change }, faults }: { state: DraftState; faults: Faults }) {
  const [hasCc, setHasCc] = useState(draft.cc.length > 0)
  const [hasBcc, setHasBcc] = useState(draft.bcc.length > 0)
  return (
    <>
      <div className="grid gap-2">
        <RecipientsField
          label={reading.to}
          value={draft.to}
          onChange={(to) => change({ to })}
          error={faults.to}
          autoFocus={draft.to.length === 0}
        />
        <div className="flex gap-1">
          {!hasCc && (
            <Button size="small" variant="quiet" onClick={() => setHasCc(true)}>
              {writing.addCc}
            </Button>
          )}
          {!hasBcc && (
            <Button size="small" variant="quiet" onClick={() => setHasBcc(true)}>
              {writing.addBcc}
            </Button>
          )}
        </div>
      </div>
      {hasCc && (
        <RecipientsField
          label={reading.cc}
          value={draft.cc}
          onChange={(cc) => change({ cc })}
          error={faults.cc}
          autoFocus
        />
      )}
      {hasBcc && (
        <RecipientsField
          label={writing.bcc}
          value={draft.bcc}
          onChange={(bcc) => change({ bcc })}
          error={faults.bcc}
          autoFocus
        />
      )}
      <TextField
        label={writing.subject}
        value={draft.subject}
        maxLength={998}
        autoComplete="off"
        error={faults.subject}
        onChange={(event) => change({ subject: event.target.value })}
      />
    </>
  )
}
