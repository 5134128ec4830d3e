// Schemas of the desk's session.
import Type, { type Static } from 'typebox'
import { exactly, Time } from './scalars.ts'

export const LinkToken = exactly({ token: Type.String({ maxLength: 100 }) })

export const Session = Type.Object({
  csrfToken: Type.String(),
  createdAt: Time,
  endsAt: Time,
  managedDomain: Type.String(),
  delivery: Type.String(),
})
export type Session = Static<typeof Session>
