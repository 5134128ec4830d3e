// What stops the embedded PostgreSQL from serving, said in one line with its mend.

/** PostgreSQL cannot be used as things are; `message` says why and what to do about it. Trying again does not help. */
export class EmbeddedError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'EmbeddedError'
  }
}
