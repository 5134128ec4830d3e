// The form of a key: its name, its expiry and its purpose, with all that follows from the purpose folded.
import { useState } from 'react'
import { Checkbox, Select, TextArea, TextField } from '../../parts/form/field.tsx'
import { RadioGroup } from '../../parts/form/radio-group.tsx'
import { useSession } from '../../shell/session.ts'
import { keys, scopeWords } from '../../texts/keys.ts'
import { InboxPicker } from './inbox-picker.tsx'
import { type KeyDraft, type KeyFaults, type Preset, presetOf, withPreset } from './key-draft.ts'
import { memberScopes, serverScopes } from './member-scopes.ts'
import { callsOfScope } from './scope-calls.ts'
import { useNameHint } from './taken-name.ts'

interface PartProps {
  draft: KeyDraft
  onChange: (draft: KeyDraft) => void
  faults: KeyFaults
}

const dayCounts = [1, 7, 14, 30]
const serverDayCounts = [...dayCounts, 90, 180, 365]
const presets = Object.entries(keys.preset).map(([value, words]) => ({ value: value as Preset, ...words }))
const sendModes = Object.entries(keys.sendModes).map(([value, words]) => ({
  value: value as KeyDraft['sendMode'],
  ...words,
}))

export function KeyForm(props: PartProps) {
  const { draft, onChange, faults } = props
  const hint = useNameHint(draft.name, keys.nameHint)
  const hasServerKeys = useSession().organization?.serverKeys ?? false
  const isServer = draft.kind === 'server'
  const preset = presetOf(draft)
  return (
    <div className="grid gap-5">
      <div className="grid items-start gap-4 sm:grid-cols-[minmax(0,1fr)_220px]">
        <TextField
          label={keys.name}
          hint={hint}
          error={faults.name}
          value={draft.name}
          maxLength={100}
          autoComplete="off"
          onChange={(event) => onChange({ ...draft, name: event.target.value })}
        />
        <Select
          label={keys.expires}
          hint={isServer ? keys.serverExpiresHint : keys.expiresHint}
          value={String(draft.expiresInDays)}
          options={(isServer ? serverDayCounts : dayCounts).map((days) => ({
            value: String(days),
            label: keys.days(days),
          }))}
          onChange={(event) => onChange({ ...draft, expiresInDays: Number(event.target.value) })}
        />
      </div>
      <RadioGroup
        label={keys.presets}
        options={hasServerKeys ? presets : presets.filter(({ value }) => value !== 'server')}
        value={preset}
        onChange={(chosen) => onChange(withPreset(draft, chosen))}
      >
        {!hasServerKeys && <p className="text-sm text-faint">{keys.serverUngranted}</p>}
      </RadioGroup>
      {preset === 'agent' && <Inboxes {...props} />}
      <Details {...props} preset={preset} />
    </div>
  )
}

/** The choices that a preset makes, folded unless the person makes them. */
function Details({ preset, ...props }: PartProps & { preset: Preset }) {
  const { draft, onChange, faults } = props
  const [isOpen, setIsOpen] = useState(false)
  const isNeeded = preset === 'own' || faults.scopes !== undefined
  return (
    <details
      open={isOpen || isNeeded}
      onToggle={(event) => setIsOpen(event.currentTarget.open)}
      className="rounded-md border px-4 py-2.5"
    >
      <summary className="text-sm">
        <span className="font-medium">{keys.further}</span>{' '}
        <span className="text-faint">{keys.furtherHint}</span>
      </summary>
      <div className="mt-4 mb-2 grid gap-5">
        <Scopes {...props} />
        {draft.kind !== 'server' && (
          <Checkbox
            label={keys.automatic}
            hint={keys.automaticHint}
            checked={draft.kind === 'agent'}
            onChange={(isOn) => onChange({ ...draft, kind: isOn ? 'agent' : 'dashboard' })}
          />
        )}
        {preset !== 'agent' && <Inboxes {...props} />}
        <Restrictions {...props} />
      </div>
    </details>
  )
}

function Scopes({ draft, onChange, faults }: PartProps) {
  const offered = draft.kind === 'server' ? [...serverScopes, ...memberScopes] : memberScopes
  return (
    <fieldset aria-describedby={faults.scopes ? 'scopes-error' : undefined}>
      <legend className="mb-2 text-sm font-medium">{keys.scopesTitle}</legend>
      <div className="grid gap-2.5 sm:grid-cols-2">
        {offered.map((scope) => (
          <div key={scope}>
            <Checkbox
              label={scopeWords[scope]?.label ?? scope}
              hint={scopeWords[scope]?.what}
              checked={draft.scopes.includes(scope)}
              onChange={(isOn) => {
                const others = draft.scopes.filter((one) => one !== scope)
                onChange({ ...draft, scopes: isOn ? [...others, scope] : others })
              }}
            />
            <Calls calls={callsOfScope[scope]} />
          </div>
        ))}
      </div>
      {faults.scopes && (
        <p id="scopes-error" className="mt-1.5 text-sm text-bad">
          {faults.scopes}
        </p>
      )}
    </fieldset>
  )
}

/** The API calls that a permission allows, folded. */
function Calls({ calls }: { calls: readonly string[] }) {
  return (
    <details className="ml-[26px] text-sm text-faint">
      <summary>{keys.callsOf(calls.length)}</summary>
      <ul className="mt-1 grid gap-0.5 font-mono text-xs break-all">
        {calls.map((call) => (
          <li key={call}>{call}</li>
        ))}
      </ul>
    </details>
  )
}

function Inboxes({ draft, onChange, faults }: PartProps) {
  const { inboxes, scopes } = draft
  const isVain = inboxes && scopes.some((scope) => scope === 'webhook:manage' || scope === 'domain:manage')
  return (
    <RadioGroup
      label={keys.inboxes}
      error={faults.inboxes}
      value={inboxes ? 'some' : 'all'}
      onChange={(value) => onChange({ ...draft, inboxes: value === 'all' ? null : [] })}
      options={[
        { value: 'all', label: keys.allInboxes, hint: keys.allInboxesHint },
        { value: 'some', label: keys.someInboxes },
      ]}
    >
      {inboxes && (
        <InboxPicker chosen={inboxes} onChange={(chosen) => onChange({ ...draft, inboxes: chosen })} />
      )}
      {isVain && <p className="text-sm text-wait">{keys.wholeOnly}</p>}
    </RadioGroup>
  )
}

function Restrictions({ draft, onChange }: PartProps) {
  return (
    <>
      <RadioGroup
        label={keys.sendMode}
        options={sendModes}
        value={draft.sendMode}
        onChange={(sendMode) => onChange({ ...draft, sendMode })}
      />
      <TextArea
        label={keys.recipientDomains}
        hint={keys.recipientDomainsHint}
        value={draft.recipientDomains}
        spellCheck={false}
        rows={2}
        onChange={(event) => onChange({ ...draft, recipientDomains: event.target.value })}
      />
      <Checkbox
        label={keys.confirmNewRecipients}
        hint={keys.confirmNewRecipientsHint}
        checked={draft.confirmNewRecipients}
        onChange={(confirmNewRecipients) => onChange({ ...draft, confirmNewRecipients })}
      />
      <TextArea
        label={keys.ips}
        hint={keys.ipsHint}
        value={draft.ips}
        spellCheck={false}
        rows={2}
        onChange={(event) => onChange({ ...draft, ips: event.target.value })}
      />
      <TextField
        label={keys.rate}
        hint={keys.rateHint}
        value={draft.requestsPerMinute}
        inputMode="numeric"
        type="number"
        min={1}
        onChange={(event) => onChange({ ...draft, requestsPerMinute: event.target.value })}
      />
    </>
  )
}
