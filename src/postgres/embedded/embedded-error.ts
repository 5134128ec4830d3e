// The error for an embedded PostgreSQL that cannot be used: one line with the reason and the remedy.

/** PostgreSQL cannot be used. `message` says why and what to do. A retry does not help. */
export class EmbeddedError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'EmbeddedError'
  }
}
