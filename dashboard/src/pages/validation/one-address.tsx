// The validation of one address: its verdict, the reason, and every check.
import { useMutation } from '@tanstack/react-query'
import {
  Check,
  CircleCheck,
  CircleHelp,
  CircleX,
  type LucideIcon,
  Minus,
  TriangleAlert,
  WandSparkles,
  X,
} from 'lucide-react'
import { type FormEvent, useState } from 'react'
import { api, read, type Schemas } from '../../api/client.ts'
import type { Tone } from '../../parts/badge.tsx'
import { DefinitionList } from '../../parts/definition-list.tsx'
import { ErrorNote } from '../../parts/error-note.tsx'
import { Button } from '../../parts/form/button.tsx'
import { TextField } from '../../parts/form/field.tsx'
import { parts } from '../../texts/parts.ts'
import { validation } from '../../texts/validation.ts'

type Result = Schemas['Validation']
type Checks = Result['checks']

export function OneAddress() {
  const [email, setEmail] = useState('')
  const check = useMutation({
    mutationFn: (address: string) => read(api.POST('/v1/validate', { body: { email: address } })),
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    check.mutate(email.trim())
  }
  return (
    <div className="grid max-w-3xl gap-5">
      <form onSubmit={submit} className="flex items-end gap-3">
        <div className="min-w-0 flex-1">
          <TextField
            label={validation.address}
            value={email}
            inputMode="email"
            autoComplete="off"
            autoCapitalize="none"
            spellCheck={false}
            placeholder="ada@example.com"
            onChange={(event) => setEmail(event.target.value)}
          />
        </div>
        <Button variant="primary" type="submit" busy={check.isPending} disabled={email.trim() === ''}>
          {validation.check}
        </Button>
      </form>
      <ErrorNote error={check.error} />
      <div aria-live="polite">
        {check.data && (
          <Verdict
            result={check.data}
            onUse={(address) => {
              setEmail(address)
              check.mutate(address)
            }}
          />
        )}
      </div>
    </div>
  )
}

const looks: Record<Result['verdict'], [LucideIcon, Tone, string]> = {
  deliverable: [CircleCheck, 'good', 'bg-good-soft text-good'],
  risky: [TriangleAlert, 'wait', 'bg-wait-soft text-wait'],
  undeliverable: [CircleX, 'bad', 'bg-bad-soft text-bad'],
  unknown: [CircleHelp, 'idle', 'bg-idle-soft text-idle'],
}

function Verdict({ result, onUse }: { result: Result; onUse: (email: string) => void }) {
  const { verdict, reason, suggestion, normalized, email, mxHosts, checks } = result
  const [Icon, , look] = looks[verdict]
  const facts: [string, string][] = []
  if (normalized !== null && normalized !== email) facts.push([validation.normalized, normalized])
  if (mxHosts.length > 0) facts.push([validation.hosts, mxHosts.join(', ')])
  return (
    <section aria-label={email} className="overflow-clip rounded-lg border bg-surface">
      <div className={`flex items-start gap-3 px-5 py-4 ${look}`}>
        <Icon size={22} aria-hidden className="mt-0.5 shrink-0" />
        <div className="min-w-0">
          <h2 className="text-lg font-semibold">{validation.verdicts[verdict]}</h2>
          <p className="text-balance">{validation.reasons[reason]}</p>
        </div>
      </div>
      {suggestion && (
        <div className="flex flex-wrap items-center gap-3 border-b px-5 py-3">
          <span>
            {validation.didYouMean} <strong className="break-all">{suggestion}</strong>?
          </span>
          <Button size="small" icon={WandSparkles} onClick={() => onUse(suggestion)}>
            {validation.use(suggestion)}
          </Button>
        </div>
      )}
      <div className="px-5 py-4">
        <h3 className="mb-2 text-sm font-medium text-faint">{validation.checks}</h3>
        <ul className="grid gap-x-6 gap-y-2 sm:grid-cols-2">
          {(Object.keys(checks) as (keyof Checks)[]).map((name) => (
            <CheckLine key={name} name={name} found={checks[name]} />
          ))}
        </ul>
        {facts.length > 0 && (
          <div className="mt-4 border-t pt-4 text-sm">
            <DefinitionList items={facts} />
          </div>
        )}
      </div>
    </section>
  )
}

/** The check results that speak for the address. A free mailbox speaks neither for nor against it. */
const good: Record<keyof Checks, boolean | null> = {
  syntax: true,
  domain: true,
  mx: true,
  mailbox: true,
  nullMx: false,
  disposable: false,
  role: false,
  freeProvider: null,
}

function CheckLine({ name, found }: { name: keyof Checks; found: boolean | null }) {
  const [yes, no, unknown] = validation.checkNames[name]!
  const speaks = found === null || good[name] === null ? 'nothing' : found === good[name] ? 'for' : 'against'
  const looks = {
    for: [Check, 'bg-good-soft text-good'],
    against: [
      X,
      name === 'role' || name === 'disposable' ? 'bg-wait-soft text-wait' : 'bg-bad-soft text-bad',
    ],
    nothing: [Minus, 'bg-idle-soft text-idle'],
  } as const
  const [Icon, look] = looks[speaks]
  return (
    <li className="flex items-start gap-2.5">
      <span aria-hidden className={`mt-px grid size-5 shrink-0 place-items-center rounded-full ${look}`}>
        <Icon size={12} strokeWidth={2.75} />
      </span>
      <span className={found === null ? 'text-faint' : ''}>
        {found === null ? unknown || parts.notAvailable : found ? yes : no}
      </span>
    </li>
  )
}
