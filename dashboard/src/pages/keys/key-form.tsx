// The form of a key: its name, its rights, its inboxes, and its expiry.
import { Checkbox, Select, TextArea, TextField } from '../../parts/form/field.tsx'
import { RadioGroup } from '../../parts/form/radio-group.tsx'
import { useSession } from '../../shell/session.ts'
import { keys, scopeWords } from '../../texts/keys.ts'
import { InboxPicker } from './inbox-picker.tsx'
import { type KeyDraft, type KeyFaults, type Preset, presetOf, withPreset } from './key-draft.ts'
import { memberScopes, serverScopes } from './member-scopes.ts'
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

export function KeyForm({ draft, onChange, faults }: PartProps) {
  const hint = useNameHint(draft.name, keys.nameHint)
  const hasServerKeys = useSession().organization?.serverKeys ?? false
  const isServer = draft.kind === 'server'
  return (
    <div className="grid gap-5">
      <TextField
        label={keys.name}
        hint={hint}
        error={faults.name}
        value={draft.name}
        maxLength={100}
        autoComplete="off"
        onChange={(event) => onChange({ ...draft, name: event.target.value })}
      />
      <RadioGroup
        label={keys.presets}
        options={hasServerKeys ? presets : presets.filter(({ value }) => value !== 'server')}
        value={presetOf(draft)}
        onChange={(preset) => onChange(withPreset(draft, preset))}
      >
        {!hasServerKeys && <p className="text-sm text-faint">{keys.serverUngranted}</p>}
      </RadioGroup>
      <Scopes draft={draft} onChange={onChange} faults={faults} />
      {!isServer && (
        <Checkbox
          label={keys.automatic}
          hint={keys.automaticHint}
          checked={draft.kind === 'agent'}
          onChange={(isOn) => onChange({ ...draft, kind: isOn ? 'agent' : 'dashboard' })}
        />
      )}
      <Inboxes draft={draft} onChange={onChange} faults={faults} />
      <Further draft={draft} onChange={onChange} faults={faults} />
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
  )
}

function Scopes({ draft, onChange, faults }: PartProps) {
  const offered = draft.kind === 'server' ? [...serverScopes, ...memberScopes] : memberScopes
  return (
    <fieldset aria-describedby={faults.scopes ? 'scopes-error' : undefined}>
      <legend className="mb-2 text-sm font-medium">{keys.scopesTitle}</legend>
      <div className="grid gap-2.5 sm:grid-cols-2">
        {offered.map((scope) => (
          <Checkbox
            key={scope}
            label={scopeWords[scope]?.label ?? scope}
            hint={scopeWords[scope]?.what}
            checked={draft.scopes.includes(scope)}
            onChange={(isOn) => {
              const others = draft.scopes.filter((one) => one !== scope)
              onChange({ ...draft, scopes: isOn ? [...others, scope] : others })
            }}
          />
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

function Further({ draft, onChange }: PartProps) {
  return (
    <details className="rounded-md border px-4 py-2.5">
      <summary className="text-sm">
        <span className="font-medium">{keys.further}</span>{' '}
        <span className="text-faint">{keys.furtherHint}</span>
      </summary>
      <div className="mt-4 mb-2 grid gap-5">
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
      </div>
    </details>
  )
}
