// A choice of a few short words, all visible, for the subject of a page, chart or list.
import type { ReactNode } from 'react'
import { classes } from '../classes.ts'

interface SegmentsProps<Value extends string> {
  label: string
  options: readonly { value: Value; label: ReactNode }[]
  value: Value
  onChange: (value: Value) => void
}

export function Segments<Value extends string>({ label, options, value, onChange }: SegmentsProps<Value>) {
  return (
    <fieldset className="flex w-fit flex-wrap gap-0.5 rounded-md border border-line-strong bg-surface p-0.5">
      <legend className="sr-only">{label}</legend>
      {options.map((option) => (
        <button
          key={option.value}
          type="button"
          aria-pressed={option.value === value}
          onClick={() => onChange(option.value)}
          className={classes(
            'numbers h-7.5 rounded-sm px-3 text-sm whitespace-nowrap',
            option.value === value ? 'bg-idle-soft font-medium text-ink' : 'text-muted hover:text-ink',
          )}
        >
          {option.label}
        </button>
      ))}
    </fieldset>
  )
}
