// The first steps within the page: an inbox, a mail from it to itself, and reading that mail.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Check } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { api, read, type Schemas } from '../../api/client.ts'
import { classes } from '../../parts/classes.ts'
import { CodeTabs } from '../../parts/code-tabs.tsx'
import { ErrorNote } from '../../parts/error-note.tsx'
import { Button, ButtonLink } from '../../parts/form/button.tsx'
import { TextField } from '../../parts/form/field.tsx'
import { SkeletonRows } from '../../parts/list/skeleton.tsx'
import { Page } from '../../parts/page.tsx'
import { overview } from '../../texts/overview.ts'
import { accessQuery } from '../access/access-query.ts'
import { inboxCode, readCode, sendCode } from './first-code.ts'

const texts = overview.steps
const againMs = 700
type Inbox = Schemas['Inbox']

export function FirstSteps() {
  const known = useQuery({
    queryKey: ['inboxes', 'first'],
    queryFn: () => read(api.GET('/v1/inboxes', { params: { query: { limit: 1 } } })),
  })
  const [opened, setOpened] = useState<Inbox | null>(null)
  const [sent, setSent] = useState<Sent | null>(null)
  if (known.isPending) return <SkeletonRows />
  const inbox = opened ?? known.data?.inboxes[0] ?? null
  return (
    <Page title={overview.firstTitle} lead={overview.firstLead} isText>
      <ErrorNote error={known.error} />
      <ol className="grid gap-4">
        <InboxStep inbox={inbox} onOpened={setOpened} />
        <SendStep inbox={inbox} sent={sent} onSent={setSent} />
        <ReadStep inbox={inbox} sent={sent} />
      </ol>
      <p className="mt-5 flex flex-wrap items-center gap-x-3 gap-y-2 text-sm text-muted">
        {overview.keyHint}
        <ButtonLink to="/keys" size="small">
          {overview.keyLink}
        </ButtonLink>
      </p>
    </Page>
  )
}

interface StepProps {
  number: number
  title: string
  what: string
  state: 'done' | 'now' | 'later'
  code: Record<string, string>
  children: ReactNode
}

function Step({ number, title, what, state, code, children }: StepProps) {
  return (
    <li
      aria-current={state === 'now' ? 'step' : undefined}
      className={classes(
        'flex gap-4 rounded-lg border bg-surface p-4 sm:p-5',
        state === 'now' && 'border-accent/50',
      )}
    >
      <span
        className={classes(
          'grid size-7 shrink-0 place-items-center rounded-full text-sm font-semibold',
          state === 'done' && 'bg-good-soft text-good',
          state === 'now' && 'bg-accent text-on-accent',
          state === 'later' && 'bg-idle-soft text-muted',
        )}
      >
        {state === 'done' ? <Check size={15} aria-label={overview.done} /> : number}
      </span>
      <div className="grid min-w-0 flex-1 gap-3">
        <div>
          <h2 className="text-lg font-semibold">{title}</h2>
          <p className="text-balance text-muted">{what}</p>
        </div>
        {children}
        <details className="min-w-0 text-sm">
          <summary className="w-fit rounded-sm text-muted hover:text-ink">{overview.asCode}</summary>
          <div className="mt-3">
            <CodeTabs label={title} codes={code} />
          </div>
        </details>
      </div>
    </li>
  )
}

function InboxStep({ inbox, onOpened }: { inbox: Inbox | null; onOpened: (inbox: Inbox) => void }) {
  const [localPart, setLocalPart] = useState(texts.inbox.suggested)
  const { data: way } = useQuery(accessQuery)
  const { mutate, isPending, error } = useMutation({
    mutationFn: () => read(api.POST('/v1/inboxes', { body: { localPart } })),
    onSuccess: onOpened,
  })
  return (
    <Step number={1} {...texts.inbox} state={inbox ? 'done' : 'now'} code={inboxCode(localPart)}>
      {inbox ? (
        <p>
          {texts.inbox.done} <strong className="font-medium break-all">{inbox.address}</strong>
        </p>
      ) : (
        <form
          className="flex flex-wrap items-end gap-x-3 gap-y-2"
          onSubmit={(event) => {
            event.preventDefault()
            mutate()
          }}
        >
          <div className="w-44">
            <TextField
              label={texts.inbox.field}
              value={localPart}
              required
              autoComplete="off"
              spellCheck={false}
              onChange={(event) => setLocalPart(event.target.value)}
            />
          </div>
          {way && <span className="flex h-9 items-center text-muted max-sm:h-11">@{way.managedDomain}</span>}
          <Button type="submit" variant="primary" busy={isPending}>
            {texts.inbox.act}
          </Button>
        </form>
      )}
      <ErrorNote error={error} />
    </Step>
  )
}

interface Sent {
  submissionId: string
  atMs: number
}

interface SendStepProps {
  inbox: Inbox | null
  sent: Sent | null
  onSent: (sent: Sent) => void
}

function SendStep({ inbox, sent, onSent }: SendStepProps) {
  const { mutate, isPending, error } = useMutation({
    mutationFn: ({ id, address }: Inbox) => sendFirst(id, address),
    onSuccess: ({ submission }) => onSent({ submissionId: submission.id, atMs: performance.now() }),
  })
  return (
    <Step
      number={2}
      {...texts.send}
      state={sent ? 'done' : inbox ? 'now' : 'later'}
      code={sendCode(inbox?.id, inbox?.address)}
    >
      {sent ? (
        <p className="flex flex-wrap items-center gap-3">
          {texts.send.done}
          <ButtonLink size="small" to={`/sending/${sent.submissionId}`}>
            {texts.send.life}
          </ButtonLink>
        </p>
      ) : (
        <Button
          className="w-fit"
          variant={inbox ? 'primary' : 'plain'}
          disabled={!inbox}
          busy={isPending}
          onClick={() => inbox && mutate(inbox)}
        >
          {texts.send.act}
        </Button>
      )}
      <ErrorNote error={error} />
    </Step>
  )
}

function sendFirst(inboxId: string, address: string) {
  const { subject, text } = texts.send
  return read(
    api.POST('/v1/inboxes/{inboxId}/messages', {
      params: { path: { inboxId }, header: { 'idempotency-key': `first-${inboxId}` } },
      body: { to: [{ email: address }], subject, text },
    }),
  )
}

function ReadStep({ inbox, sent }: { inbox: Inbox | null; sent: Sent | null }) {
  const arrived = useArrival(inbox?.id, sent)
  return (
    <Step
      number={3}
      {...texts.read}
      state={arrived ? 'done' : sent ? 'now' : 'later'}
      code={readCode(inbox?.id)}
    >
      <div aria-live="polite">
        {arrived ? (
          <p className="flex flex-wrap items-center gap-3">
            {texts.read.done(arrived.seconds)}
            <ButtonLink variant="primary" to={`/mail/${inbox?.id}/${arrived.threadId}`}>
              {texts.read.act}
            </ButtonLink>
          </p>
        ) : (
          sent && <p className="animate-breathe text-muted">{texts.read.waiting}</p>
        )}
      </div>
    </Step>
  )
}

/** Polls the inbox until the mail has arrived. */
function useArrival(
  inboxId: string | undefined,
  sent: Sent | null,
): { threadId: string; seconds: string } | null {
  const queries = useQueryClient()
  const { data: arrived } = useQuery({
    queryKey: ['first-arrival', inboxId, sent?.submissionId],
    enabled: Boolean(inboxId && sent),
    refetchInterval: ({ state }) => (state.data ? false : againMs),
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async () => {
      const path = { inboxId: inboxId! }
      const query = { direction: 'inbound' as const, limit: 1 }
      const { messages } = await read(api.GET('/v1/inboxes/{inboxId}/messages', { params: { path, query } }))
      const [first] = messages
      if (!first) return null
      void queries.invalidateQueries({ queryKey: ['inboxes'] })
      return { threadId: first.threadId, seconds: ((performance.now() - sent!.atMs) / 1000).toFixed(1) }
    },
  })
  return arrived ?? null
}
