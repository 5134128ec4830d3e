// Schemas of organizations at the desk.
import Type, { type Static } from 'typebox'
import { exactly, oneOf, orNull, Time, Uuid } from './scalars.ts'

const Count = Type.Integer()
const Status = oneOf(['pending', 'active', 'suspended', 'deleting'])

export const OrganizationParams = Type.Object({ organizationId: Uuid })

export const OrganizationQuery = exactly({
  search: Type.Optional(Type.String({ maxLength: 200 })),
  status: Type.Optional(Status),
  cursor: Type.Optional(Uuid),
})

const Counts = Type.Object({ pending: Count, active: Count, suspended: Count, deleting: Count })

/** The number of organizations in each status. */
export const OrganizationCounts = Type.Object({ counts: Counts })

export const OrganizationList = Type.Object({
  organizations: Type.Array(
    Type.Object({
      id: Uuid,
      name: Type.String(),
      status: Status,
      createdAt: Time,
      inboxes: Count,
      domains: Count,
      keys: Count,
      waiting: Count,
      owner: orNull(Type.String()),
    }),
  ),
  counts: Counts,
  nextCursor: orNull(Type.String()),
})

const Member = Type.Object({
  email: Type.String(),
  name: Type.String(),
  role: oneOf(['owner', 'member', 'viewer']),
  createdAt: Time,
  lastSeenAt: orNull(Time),
})

const Domain = Type.Object({
  id: Uuid,
  name: Type.String(),
  status: Type.String(),
  inbound: Type.String(),
  outbound: Type.String(),
  createdAt: Time,
})

const Key = Type.Object({
  id: Uuid,
  name: Type.String(),
  kind: Type.String(),
  scopes: Type.Array(Type.String()),
  createdAt: Time,
  expiresAt: orNull(Time),
  revokedAt: orNull(Time),
})

/** A limit and its current use. Null: the use is not counted. */
const Limit = Type.Object({
  name: Type.String(),
  value: Type.Number(),
  used: orNull(Type.Number()),
})

const Rate = orNull(Type.Number())

export const Organization = Type.Object({
  id: Uuid,
  name: Type.String(),
  status: Status,
  createdAt: Time,
  updatedAt: Time,
  waiting: Count,
  /** Whether this is the service's own organization, which cannot be deleted. */
  isOwn: Type.Boolean(),
  limits: Type.Array(Limit),
  /** Whether its members may make server keys. */
  serverKeys: Type.Boolean(),
  members: Type.Array(Member),
  domains: Type.Array(Domain),
  keys: Type.Array(Key),
  lastDay: Type.Object({
    accepted: Count,
    recipients: Count,
    delivered: Count,
    deferred: Count,
    bounced: Count,
    failed: Count,
    complained: Count,
    received: Count,
    rates: Type.Object({ delivery: Rate, bounce: Rate, complaint: Rate }),
  }),
})
export type Organization = Static<typeof Organization>

export const OrganizationState = Type.Object({ id: Uuid, name: Type.String(), status: Status })
export const NewName = exactly({ name: Type.String({ minLength: 1, maxLength: 200, pattern: '^\\P{Cc}*$' }) })
export const NewLimits = exactly({
  limits: Type.Optional(Type.Record(Type.String({ maxLength: 50 }), Type.Number())),
  serverKeys: Type.Optional(Type.Boolean()),
})
/** An approval needs no body. It can grant server keys. */
export const Approval = orNull(exactly({ serverKeys: Type.Optional(Type.Boolean()) }))

const Holdings = Type.Object({
  inboxes: Count,
  messages: Count,
  submissions: Count,
  domains: Count,
  webhooks: Count,
  keys: Count,
  suppressions: Count,
})

export const Deletion = Type.Object({
  /** The objects to delete. */
  holdings: Holdings,
  /** Null: the deletion was not started on this node. */
  work: Type.Union([
    Type.Object({
      state: oneOf(['running', 'done', 'failed']),
      steps: Type.Array(Type.String()),
      fault: orNull(Type.String()),
      startedAt: Time,
      endedAt: orNull(Time),
    }),
    Type.Null(),
  ]),
  isGone: Type.Boolean(),
})
export type Deletion = Static<typeof Deletion>
