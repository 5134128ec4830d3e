// A card with a name that can be changed.
import type { ReactNode } from 'react'
import { Card } from '../../parts/card.tsx'
import { DefinitionList } from '../../parts/definition-list.tsx'
import { ErrorNote } from '../../parts/error-note.tsx'
import { Button } from '../../parts/form/button.tsx'
import { TextField } from '../../parts/form/field.tsx'
import { toast } from '../../parts/toasts.ts'
import { settings } from '../../texts/settings.ts'

interface NameFormProps {
  title: string
  lead?: string
  label: string
  hint?: string
  /** Facts below the form, which it does not change. */
  facts: readonly (readonly [string, ReactNode])[]
  name: string
  setName: (name: string) => void
  /** The stored name. */
  saved: string
  change: {
    mutate: (given: undefined, then: { onSuccess: () => void }) => void
    isPending: boolean
    error: unknown
  }
}

export function NameForm({ title, lead, label, hint, facts, name, setName, saved, change }: NameFormProps) {
  return (
    <Card title={title} {...(lead ? { lead } : {})}>
      <form
        className="mb-5 flex flex-wrap items-end gap-2"
        onSubmit={(event) => {
          event.preventDefault()
          change.mutate(undefined, { onSuccess: () => toast(settings.saved) })
        }}
      >
        <div className="min-w-56 flex-1">
          <TextField
            label={label}
            hint={hint}
            value={name}
            required
            maxLength={100}
            onChange={(event) => setName(event.target.value)}
          />
        </div>
        <Button
          type="submit"
          busy={change.isPending}
          disabled={name.trim() === '' || name === saved}
          className={hint ? 'mb-[26px]' : ''}
        >
          {settings.save}
        </Button>
      </form>
      <ErrorNote error={change.error} />
      <DefinitionList items={facts} />
    </Card>
  )
}
