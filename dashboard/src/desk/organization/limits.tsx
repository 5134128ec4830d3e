// The limits of an organization: their usage and their change.
import { Pencil } from 'lucide-react'
import { useState } from 'react'
import { read } from '../../api/client.ts'
import { binaryBytes } from '../../parts/bytes.ts'
import { Card } from '../../parts/card.tsx'
import { Button } from '../../parts/form/button.tsx'
import { Checkbox, TextField } from '../../parts/form/field.tsx'
import { FormDialog } from '../../parts/form/form-dialog.tsx'
import { Progress } from '../../parts/progress.tsx'
import { desk } from '../../texts/desk.ts'
import { api, type Organization } from '../client.ts'
import { useDeed } from '../deed.ts'

const { organization: words } = desk
type Limit = Organization['limits'][number]

export function LimitsCard({ organization }: { organization: Organization }) {
  const [isChanging, setChanging] = useState(false)
  const change = (
    <Button size="small" icon={Pencil} onClick={() => setChanging(true)}>
      {words.limitsChange}
    </Button>
  )
  return (
    <Card
      title={words.limits}
      lead={words.limitsLead}
      actions={organization.status === 'deleting' ? null : change}
    >
      <div className="grid gap-3.5">
        {organization.limits.map((limit) => (
          <LimitLine key={limit.name} limit={limit} />
        ))}
        <Line
          label={words.serverKeys}
          value={organization.serverKeys ? words.serverKeysGranted : words.serverKeysNot}
        />
      </div>
      {isChanging && <ChangeLimits organization={organization} onClose={() => setChanging(false)} />}
    </Card>
  )
}

function LimitLine({ limit: { name, value, used } }: { limit: Limit }) {
  const label = words.limitNames[name] ?? name
  const format = isBytes(name) ? binaryBytes : (count: number) => count.toLocaleString('en')
  if (used !== null) return <Progress label={label} value={used} max={value} format={format} limit />
  return <Line label={label} value={format(value)} />
}

function Line({ label, value }: { label: string; value: string }) {
  return (
    <div className="flex justify-between gap-4 text-sm">
      <span>{label}</span>
      <span className="numbers text-muted">{value}</span>
    </div>
  )
}

function isBytes(name: string): boolean {
  return name.includes('Bytes')
}

interface ChangeProps {
  organization: Organization
  onClose: () => void
}

function ChangeLimits({ organization: { id, limits, serverKeys }, onClose }: ChangeProps) {
  const [isGranted, setGranted] = useState(serverKeys)
  const [texts, setTexts] = useState(() => new Map(limits.map(({ name, value }) => [name, String(value)])))
  const wrong = (name: string) => (/^\d{1,16}$/.test(texts.get(name) ?? '') ? null : words.wholeNumber)
  const changed = limits.filter(({ name, value }) => texts.get(name) !== String(value))
  const save = useDeed(
    () => {
      const named = Object.fromEntries(changed.map(({ name }) => [name, Number(texts.get(name))]))
      const body = { limits: named, ...(isGranted === serverKeys ? {} : { serverKeys: isGranted }) }
      return read(
        api.PATCH('/organizations/{organizationId}/limits', {
          params: { path: { organizationId: id } },
          body,
        }),
      )
    },
    () => words.limitsSaved,
    onClose,
  )
  const isChanged = changed.length > 0 || isGranted !== serverKeys
  const cannotSave = !isChanged || limits.some(({ name }) => wrong(name) !== null)
  return (
    <FormDialog
      onClose={onClose}
      title={words.limitsTitle}
      lead={words.limitsLeadDialog}
      width="large"
      submit={words.limitsSave}
      sending={save}
      disabled={cannotSave}
      onSubmit={() => save.mutate()}
    >
      <div className="grid items-start gap-4 sm:grid-cols-2">
        {limits.map(({ name }) => (
          <TextField
            key={name}
            inputMode="numeric"
            label={words.limitNames[name] ?? name}
            value={texts.get(name) ?? ''}
            error={wrong(name)}
            hint={isBytes(name) && !wrong(name) ? binaryBytes(Number(texts.get(name))) : undefined}
            onChange={(event) => setTexts(new Map(texts).set(name, event.target.value.trim()))}
          />
        ))}
      </div>
      <Checkbox
        label={words.serverKeysGrant}
        hint={words.serverKeysHint}
        checked={isGranted}
        onChange={setGranted}
      />
    </FormDialog>
  )
}
