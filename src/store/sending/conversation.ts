// The conversation of an attempt as it is stored: each command, its reply and the time of the reply, in up to 2 KiB.

export interface ConversationStep {
  /** The command's verb; `connect` for the greeting, `.` for the end of a message. */
  command: string
  /**
   * When the reply was read, in ms since the attempt began. Negative for steps that opened the connection before the
   * attempt.
   */
  atMs: number
  /** 0 for `connect` at a server that was skipped without a reply. */
  code: number
  enhancedStatus: string | null
  /** The peer's text, sanitized, in one line. For a server that was skipped: its name and the reason. A text that was cut ends with `…`. */
  text: string
}

export interface Conversation {
  /** Whether the connection had carried a message before, so that its opening belongs to another attempt. */
  isReused: boolean
  steps: ConversationStep[]
}

/** A step as the column stores it. */
export type StoredStep = [
  command: string,
  atMs: number,
  code: number,
  enhancedStatus: string | null,
  text: string,
]

interface Step {
  command: string
  /** On the monotonic clock. */
  atMs: number
  reply: { code: number; enhanced: string | null; text: string }
}

/** The first step of every connection. */
const opening = 'connect'
const maxBytes = 2048

/**
 * Returns the conversation as JSON of up to 2 KiB, or null if there are no steps. Cuts the longest texts first. `steps` has
 * up to a dozen steps, whose verbs are ours and short.
 */
export function writeConversation(steps: readonly Step[], beganMs: number): string | null {
  if (steps.length === 0) return null
  for (let maxLength = maxBytes; ; maxLength >>= 1) {
    const json = JSON.stringify(
      steps.map(({ command, atMs, reply: { code, enhanced, text } }): StoredStep => {
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

/** Returns the conversation from its column, as it is shown. */
export function readConversation(stored: StoredStep[] | null): Conversation | null {
  if (!stored) return null
  const steps = stored.map(([command, atMs, code, enhancedStatus, text]) => {
    return { command, atMs, code, enhancedStatus, text }
  })
  return { isReused: steps[0]?.command !== opening, steps }
}

/** Cuts a text without splitting a character. */
function cut(text: string, maxLength: number): string {
  return text.length <= maxLength ? text : `${text.slice(0, maxLength).replace(/[\ud800-\udbff]$/, '')}…`
}
