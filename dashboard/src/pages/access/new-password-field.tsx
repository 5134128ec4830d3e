// A password that is chosen: any 10 characters and more.
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
