// Schemas of the audit log at the desk: action, actor and address.
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
      /** JSON whose members depend on the action. */
      detail: Type.String(),
      ip: orNull(Type.String()),
      at: Time,
    }),
  ),
  nextCursor: orNull(Type.String()),
})
