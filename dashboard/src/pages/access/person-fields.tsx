// The fields about a person: the email address, the name, and the current password.
import type { ReactNode } from 'react'
import { TextField } from '../../parts/form/field.tsx'
import { access } from '../../texts/access.ts'

interface FieldProps {
  value: string
  onChange: (value: string) => void
}

/** `passkeys`: browsers offer this site's passkeys among the addresses. */
export function EmailField({ value, onChange, offers }: FieldProps & { offers?: 'passkeys' }) {
  return (
    <TextField
      label={access.email}
      type="email"
      name="email"
      autoComplete={offers === 'passkeys' ? 'username webauthn' : 'username'}
      required
      value={value}
      onChange={(event) => onChange(event.target.value)}
    />
  )
}

export function NameField({ value, onChange }: FieldProps) {
  return (
    <TextField
      label={access.name}
      name="name"
      autoComplete="name"
      required
      maxLength={100}
      value={value}
      onChange={(event) => onChange(event.target.value)}
    />
  )
}

export function PasswordField({ value, onChange, hint }: FieldProps & { hint?: ReactNode }) {
  return (
    <TextField
      label={access.password}
      type="password"
      name="password"
      autoComplete="current-password"
      required
      value={value}
      hint={hint}
      onChange={(event) => onChange(event.target.value)}
    />
  )
}
