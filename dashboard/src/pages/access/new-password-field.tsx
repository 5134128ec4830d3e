// The field for a new password of at least 10 characters.
import { TextField } from '../../parts/form/field.tsx'
import { access } from '../../texts/access.ts'

interface NewPasswordFieldProps {
  label: string
  value: string
  onChange: (value: string) => void
}

export function NewPasswordField({ label, value, onChange }: NewPasswordFieldProps) {
  return (
    <TextField
      label={label}
      type="password"
      name="new-password"
      autoComplete="new-password"
      required
      minLength={10}
      maxLength={200}
      hint={access.passwordHint}
      value={value}
      onChange={(event) => onChange(event.target.value)}
    />
  )
}
