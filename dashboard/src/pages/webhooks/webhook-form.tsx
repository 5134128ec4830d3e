// The form of an endpoint: its address, its events, and its description.
import { useState } from 'react'
import { ApiError } from '../../api/client.ts'
import { Checkbox, TextField } from '../../parts/form/field.tsx'
import { RadioGroup } from '../../parts/form/radio-group.tsx'
import { eventKinds, webhooks } from '../../texts/webhooks.ts'
import type { Webhook } from './queries.ts'

export interface WebhookDraft {
  url: string
  description: string
  /** Null: all events. */
  eventTypes: string[] | null
}

type EventTypes = Webhook['eventTypes']

export const emptyDraft: WebhookDraft = { url: '', description: '', eventTypes: null }
const kinds = Object.entries(eventKinds).filter(([type]) => type !== 'webhook.test')

export function draftOf({ url, description, eventTypes }: Webhook): WebhookDraft {
  return { url, description: description ?? '', eventTypes }
}

/** Returns the body that the API takes. */
export function bodyOf({ url, description, eventTypes }: WebhookDraft) {
  return { url: url.trim(), description: description.trim() || null, eventTypes: eventTypes as EventTypes }
}

/** Returns what is missing, before anything is sent. */
export function faultOf({ url, eventTypes }: WebhookDraft): { url?: string; events?: string } {
  return {
    ...(url.trim() ? {} : { url: webhooks.urlMissing }),
    ...(eventTypes?.length === 0 ? { events: webhooks.noneChosen } : {}),
  }
}

/** Returns the API's error about the address, for its field. All other errors concern the whole form. */
export function refusalOfUrl(error: unknown): string | null {
  const isAboutUrl = error instanceof ApiError && error.message.startsWith('/url ')
  return isAboutUrl ? `${webhooks.url}: ${error.message.slice('/url '.length)}` : null
}

interface WebhookFormProps {
  draft: WebhookDraft
  onChange: (draft: WebhookDraft) => void
  faults: { url?: string | undefined; events?: string | undefined }
}

export function WebhookForm({ draft, onChange, faults }: WebhookFormProps) {
  return (
    <div className="grid gap-5">
      <TextField
        label={webhooks.url}
        hint={webhooks.urlHint}
        error={faults.url}
        value={draft.url}
        type="url"
        inputMode="url"
        autoComplete="off"
        spellCheck={false}
        maxLength={2048}
        onChange={(event) => onChange({ ...draft, url: event.target.value })}
      />
      <EventChoice draft={draft} onChange={onChange} fault={faults.events} />
      <TextField
        label={webhooks.description}
        hint={webhooks.descriptionHint}
        value={draft.description}
        maxLength={200}
        onChange={(event) => onChange({ ...draft, description: event.target.value })}
      />
    </div>
  )
}

interface EventChoiceProps {
  draft: WebhookDraft
  onChange: (draft: WebhookDraft) => void
  fault: string | undefined
}

function EventChoice({ draft, onChange, fault }: EventChoiceProps) {
  const [kept, setKept] = useState<string[]>(draft.eventTypes ?? ['message.received', 'message.bounced'])
  const choose = (eventTypes: string[]) => {
    setKept(eventTypes)
    onChange({ ...draft, eventTypes })
  }
  return (
    <RadioGroup
      label={webhooks.whichEvents}
      error={fault}
      value={draft.eventTypes ? 'some' : 'all'}
      onChange={(value) => onChange({ ...draft, eventTypes: value === 'all' ? null : kept })}
      options={[
        { value: 'all', label: webhooks.all, hint: webhooks.allHint },
        { value: 'some', label: webhooks.some },
      ]}
    >
      {draft.eventTypes && (
        <div className="mt-1 grid gap-2.5 pl-6.5">
          {kinds.map(([type, what]) => (
            <Checkbox
              key={type}
              label={<code>{type}</code>}
              hint={what}
              checked={kept.includes(type)}
              onChange={(isOn) => choose(isOn ? [...kept, type] : kept.filter((one) => one !== type))}
            />
          ))}
        </div>
      )}
    </RadioGroup>
  )
}
