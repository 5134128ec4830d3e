// The fields about a person: the email address, the name, and the current or a new password.
import { type ComponentProps, type ReactNode, useState } from 'react'
import { TextField } from '../../parts/form/field.tsx'
import { access } from '../../texts/access.ts'

interface FieldProps {
  value: string
  onChange: (value: string) => void
}

type PersonFieldProps = FieldProps &
  Omit<ComponentProps<typeof TextField>, 'onChange' | 'error'> & { fault: string }

/** A required field that shows `fault` once its form is submitted with a value that the browser finds invalid. */
function PersonField({ fault, onChange, ...rest }: PersonFieldProps) {
  const [isFaulty, setIsFaulty] = useState(false)
  return (
    <TextField
      {...rest}
      required
      error={isFaulty ? fault : null}
      onInvalid={() => setIsFaulty(true)}
      onChange={(event) => {
        setIsFaulty(false)
        onChange(event.target.value)
      }}
    />
  )
}

/** `passkeys`: browsers offer this site's passkeys among the addresses. */
export function EmailField({ offers, ...rest }: FieldProps & { offers?: 'passkeys' }) {
  return (
    <PersonField
      {...rest}
      label={access.email}
      fault={access.emailFault}
      type="email"
      name="email"
      autoComplete={offers === 'passkeys' ? 'username webauthn' : 'username'}
    />
  )
}

export function NameField(props: FieldProps) {
  return (
    <PersonField
      {...props}
      label={access.name}
      fault={access.nameFault}
      name="name"
      autoComplete="name"
      maxLength={100}
    />
  )
}

export function PasswordField(props: FieldProps & { hint?: ReactNode }) {
  return (
    <PersonField
      {...props}
      label={access.password}
      fault={access.passwordFault}
      type="password"
      name="password"
      autoComplete="current-password"
    />
  )
}

export function NewPasswordField(props: FieldProps & { label: string }) {
  return (
    <PersonField
      {...props}
      fault={access.newPasswordFault}
      type="password"
      name="new-password"
      autoComplete="new-password"
      minLength={10}
      maxLength={200}
      hint={access.passwordHint}
    />
  )
}
