// Whose turn it is among organizations, so that what one of them brings holds up its own work and nobody else's.
import type { OrganizationId } from './ids.ts'

/** What the lines of one kind of work share. */
export class Rotation {
  /** Who had the last turn; the next is behind it in the order of ids. */
  last: OrganizationId | null = null
  /** Whose work takes long: a line of its own does it, an organization after the other. */
  readonly slow = new Set<OrganizationId>()
}
