// Whose turn it is among organizations, so that what one of them brings holds up its own work and nobody else's.
import type { OrganizationId } from './ids.ts'

/**
 * Where a line of one kind of work is. What failed before stops a look that has anything else, to be the first of the next:
 * a line that takes it needs a rotation that no other moves on.
 */
export class Rotation {
  /** Who had the last turn; the next is behind it in the order of ids. */
  last: OrganizationId | null = null
  /** Whose work takes long: a line of its own does it, an organization after the other. Lines that work together share it. */
  readonly slow: Set<OrganizationId>

  constructor(slow = new Set<OrganizationId>()) {
    this.slow = slow
  }
}
