// The filters of messages: direction, sender, and first day.

import { type FormEvent, useState } from 'react'
import { Button } from '../../parts/form/button.tsx'
import { Select, TextField } from '../../parts/form/field.tsx'
import { mail } from '../../texts/mail.ts'
import { useFind, usePlace } from './place.ts'

export function FilterFields() {
  const { direction = '', from = '', since = '' } = usePlace()
  const [sender, setSender] = useState(from)
  const find = useFind()
  const submit = (event: FormEvent) => {
    event.preventDefault()
    find({ from: sender.trim() })
  }
  return (
    <form onSubmit={submit} className="mt-2 grid gap-2 pb-1">
      <div className="grid grid-cols-2 gap-2 *:min-w-0">
        <Select
          label={mail.direction}
          value={direction}
          className="h-8 text-sm!"
          onChange={(event) => find({ direction: event.target.value })}
          options={Object.entries(mail.directions).map(([id, label]) => ({
            value: id === 'all' ? '' : id,
            label,
          }))}
        />
        <TextField
          label={mail.since}
          type="date"
          className="h-8 px-2! text-sm!"
          value={since}
          onChange={(event) => find({ since: event.target.value })}
        />
      </div>
      <TextField
        label={mail.from}
        type="email"
        value={sender}
        className="h-8 text-sm!"
        autoComplete="off"
        onChange={(event) => setSender(event.target.value)}
        onBlur={() => find({ from: sender.trim() })}
      />
      <Button
        size="small"
        onClick={() => {
          setSender('')
          find({ q: '', direction: '', from: '', since: '' })
        }}
      >
        {mail.clearFilters}
      </Button>
    </form>
  )
}
