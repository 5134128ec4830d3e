// A picker for any number of inboxes: searched by address or name, with the chosen ones on top.
import { useQuery } from '@tanstack/react-query'
import { X } from 'lucide-react'
import { useDeferredValue, useState } from 'react'
import { IconButton } from '../../parts/form/button.tsx'
import { Checkbox, TextField } from '../../parts/form/field.tsx'
import { keys } from '../../texts/keys.ts'
import { parts } from '../../texts/parts.ts'
import type { CallInbox } from './first-call.ts'
import { inboxesQuery, inboxLimit } from './queries.ts'

interface InboxPickerProps {
  chosen: readonly CallInbox[]
  onChange: (chosen: readonly CallInbox[]) => void
}

export function InboxPicker({ chosen, onChange }: InboxPickerProps) {
  const [text, setText] = useState('')
  const wanted = useDeferredValue(text.trim())
  const { data: found } = useQuery(inboxesQuery(wanted))
  const without = (id: string) => chosen.filter((one) => one.id !== id)
  return (
    <div className="grid gap-2 pl-6.5">
      {chosen.length > 0 && (
        <ul className="flex flex-wrap gap-1.5" aria-label={keys.chosen(chosen.length)}>
          {chosen.map(({ id, address }) => (
            <li
              key={id}
              className="flex max-w-full items-center rounded-sm bg-idle-soft pl-2 text-sm text-muted"
            >
              <span className="truncate">{address}</span>
              <IconButton
                size="small"
                icon={X}
                label={`${parts.dismiss}: ${address}`}
                onClick={() => onChange(without(id))}
              />
            </li>
          ))}
        </ul>
      )}
      <TextField
        label={keys.findInbox}
        labelHidden
        placeholder={keys.findInbox}
        type="search"
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          // Enter searches. It must not submit the form.
          if (event.key === 'Enter') event.preventDefault()
        }}
      />
      <div className="grid max-h-44 gap-1.5 overflow-y-auto rounded-md border px-3 py-2.5">
        {found?.length === 0 && <p className="text-sm text-faint">{keys.noInbox}</p>}
        {found?.map(({ id, address, displayName }) => (
          <Checkbox
            key={id}
            label={<span className="text-sm break-all">{address}</span>}
            hint={displayName}
            checked={chosen.some((one) => one.id === id)}
            onChange={(isOn) => onChange(isOn ? [...chosen, { id, address }] : without(id))}
          />
        ))}
      </div>
      {found?.length === inboxLimit && <p className="text-sm text-faint">{keys.moreInboxes(inboxLimit)}</p>}
    </div>
  )
}
