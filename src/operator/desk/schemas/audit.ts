// What the desk says of what was done, by whom and from where.
import Type from 'typebox'
import { exactly, orNull, Time, Uuid } from './scalars.ts'

export const AuditQuery = exactly({ cursor: Type.Optional(Uuid) })

export const AuditList = Type.Object({
  entries: Type.Array(
    Type.Object({
      id: Uuid,
      actor: Type.String(),
      action: Type.String(),
      subject: Type.String(),
      organizationId: orNull(Uuid),
      organizationName: orNull(Type.String()),
      /** As JSON: what it holds depends on what was done. */
      detail: Type.String(),
      ip: orNull(Type.String()),
      at: Time,
    }),
  ),
  nextCursor: orNull(Type.String()),
})
