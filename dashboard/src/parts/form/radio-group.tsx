// A choice of a few visible options, each with its explanation.
import { type ReactNode, useId } from 'react'

interface RadioOption<Value extends string> {
  value: Value
  label: ReactNode
  hint?: ReactNode
}

interface RadioGroupProps<Value extends string> {
  label: string
  options: readonly RadioOption<Value>[]
  value: Value
  onChange: (value: Value) => void
  error?: string | null | undefined
  /** Content below the option that belongs to it. */
  children?: ReactNode
}

export function RadioGroup<Value extends string>(props: RadioGroupProps<Value>) {
  const { label, options, value, onChange, error, children } = props
  const id = useId()
  return (
    <fieldset className="grid min-w-0 gap-2" aria-describedby={error ? `${id}-error` : undefined}>
      <legend className="mb-1.5 text-sm font-medium text-ink">{label}</legend>
      {options.map((option) => (
        <div key={option.value} className="flex items-start gap-2.5">
          <input
            type="radio"
            id={`${id}-${option.value}`}
            name={id}
            value={option.value}
            checked={option.value === value}
            aria-describedby={option.hint ? `${id}-${option.value}-hint` : undefined}
            onChange={() => onChange(option.value)}
            className="mt-[3px] size-4 shrink-0 accent-(--accent)"
          />
          <div className="min-w-0">
            <label htmlFor={`${id}-${option.value}`} className="text-base">
              {option.label}
            </label>
            {option.hint && (
              <p id={`${id}-${option.value}-hint`} className="text-sm text-faint">
                {option.hint}
              </p>
            )}
          </div>
        </div>
      ))}
      {children}
      {error && (
        <p id={`${id}-error`} className="text-sm text-bad">
          {error}
        </p>
      )}
    </fieldset>
  )
}
