// What was said in an attempt, as it is kept: each command, its reply, and when that came, in at most 2 KiB.

export interface ConversationStep {
  /** Its verb; `connect` for the greeting, `.` for the end of a message. */
  command: string
  /** When the reply was read, in ms since the attempt began. What opened the connection came before. */
  atMs: number
  code: number
  enhancedStatus: string | null
  /** The peer's words, sanitized, in one line; those that were cut end with `…`. */
  text: string
}

export interface Conversation {
  /** The connection had carried a message before: its opening belongs to another attempt. */
  isReused: boolean
  steps: ConversationStep[]
}

/** A step as the column has it. */
export type StoredStep = [
  command: string,
  atMs: number,
  code: number,
  enhancedStatus: string | null,
  text: string,
]

interface Said {
  command: string
  /** On the monotonic clock. */
  atMs: number
  reply: { code: number; enhanced: string | null; text: string }
}

/** The step that every connection begins with. */
const opening = 'connect'
const maxBytes = 2048

/**
 * What was said as JSON of at most 2 KiB: the longest words are cut first. Null: nothing was said. `said` has a dozen steps
 * at most, with verbs of our own.
 */
export function writeConversation(said: readonly Said[], beganMs: number): string | null {
  if (said.length === 0) return null
  for (let maxLength = maxBytes; ; maxLength >>= 1) {
    const json = JSON.stringify(
      said.map(({ command, atMs, reply: { code, enhanced, text } }): StoredStep => {
        return [
          command,
          Math.round(atMs - beganMs),
          code,
          enhanced,
          cut(text.replaceAll('\n', ' '), maxLength),
        ]
      }),
    )
    if (Buffer.byteLength(json) <= maxBytes || maxLength === 0) return json
  }
}

/** What the column has, as it is shown. */
export function readConversation(stored: StoredStep[] | null): Conversation | null {
  if (!stored) return null
  const steps = stored.map(([command, atMs, code, enhancedStatus, text]) => {
    return { command, atMs, code, enhancedStatus, text }
  })
  return { isReused: steps[0]?.command !== opening, steps }
}

/** Whole characters. */
function cut(text: string, maxLength: number): string {
  return text.length <= maxLength ? text : `${text.slice(0, maxLength).replace(/[\ud800-\udbff]$/, '')}…`
}
