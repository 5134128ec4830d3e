// A form field: a label, a control, a hint, and an error.
import {
  type InputHTMLAttributes,
  type ReactNode,
  type Ref,
  type SelectHTMLAttributes,
  type TextareaHTMLAttributes,
  useId,
} from 'react'
import { classes } from '../classes.ts'

interface Labelled {
  label: string
  hint?: ReactNode
  error?: string | null | undefined
  /** Only screen readers get the label. */
  labelHidden?: boolean
}

interface Ids {
  id: string
  'aria-describedby': string | undefined
  'aria-invalid': true | undefined
}

/** The frame of one control: `children` gets the attributes that tie it to its label. */
export function Field({
  label,
  hint,
  error,
  labelHidden,
  children,
}: Labelled & { children: (ids: Ids) => ReactNode }) {
  const id = useId()
  const describedBy = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(' ')
  return (
    <div className="grid grid-cols-1 content-start gap-1.5">
      <label htmlFor={id} className={labelHidden ? 'sr-only' : 'text-sm font-medium text-ink'}>
        {label}
      </label>
      {children({
        id,
        'aria-describedby': describedBy || undefined,
        'aria-invalid': error ? true : undefined,
      })}
      {error && (
        <p id={`${id}-error`} className="text-sm text-bad">
          {error}
        </p>
      )}
      {hint && (
        <p id={`${id}-hint`} className="text-sm text-faint">
          {hint}
        </p>
      )}
    </div>
  )
}

type TextFieldProps = Labelled & InputHTMLAttributes<HTMLInputElement> & { ref?: Ref<HTMLInputElement> }

export function TextField({ label, hint, error, labelHidden, className, ...rest }: TextFieldProps) {
  return (
    <Field label={label} hint={hint} error={error} labelHidden={labelHidden ?? false}>
      {(ids) => <input type="text" {...rest} {...ids} className={classes('control', className)} />}
    </Field>
  )
}

type TextAreaProps = Labelled &
  TextareaHTMLAttributes<HTMLTextAreaElement> & { ref?: Ref<HTMLTextAreaElement> }

export function TextArea({ label, hint, error, labelHidden, className, ...rest }: TextAreaProps) {
  return (
    <Field label={label} hint={hint} error={error} labelHidden={labelHidden ?? false}>
      {(ids) => (
        <textarea
          rows={4}
          {...rest}
          {...ids}
          className={classes('control h-auto min-h-20 resize-y py-2', className)}
        />
      )}
    </Field>
  )
}

interface Option {
  value: string
  label: string
}
type SelectProps = Labelled & SelectHTMLAttributes<HTMLSelectElement> & { options: readonly Option[] }

/** A choice from a short list. The browser's own list is also the best on a phone. */
export function Select({ label, hint, error, labelHidden, options, className, ...rest }: SelectProps) {
  return (
    <Field label={label} hint={hint} error={error} labelHidden={labelHidden ?? false}>
      {(ids) => (
        <select {...rest} {...ids} className={classes('control pr-8', className)}>
          {options.map((option) => (
            <option key={option.value} value={option.value}>
              {option.label}
            </option>
          ))}
        </select>
      )}
    </Field>
  )
}

interface Choice {
  label: ReactNode
  hint?: ReactNode
  checked: boolean
  onChange: (checked: boolean) => void
  disabled?: boolean
}

export function Checkbox({ label, hint, checked, onChange, disabled }: Choice) {
  const id = useId()
  return (
    <div className="flex items-start gap-2.5">
      <input
        id={id}
        type="checkbox"
        checked={checked}
        disabled={disabled}
        aria-describedby={hint ? `${id}-hint` : undefined}
        onChange={(event) => onChange(event.target.checked)}
        className="mt-[3px] size-4 shrink-0 accent-(--accent)"
      />
      <div className="min-w-0 break-words">
        <label htmlFor={id} className="text-base">
          {label}
        </label>
        {hint && (
          <p id={`${id}-hint`} className="text-sm text-faint">
            {hint}
          </p>
        )}
      </div>
    </div>
  )
}
