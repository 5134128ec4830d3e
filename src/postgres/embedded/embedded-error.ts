// The error that stops the embedded PostgreSQL from serving, in one line with its remedy.

/** PostgreSQL cannot be used. `message` says why and what to do. A retry does not help. */
export class EmbeddedError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'EmbeddedError'
  }
}
