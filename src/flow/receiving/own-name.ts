// The EHLO name by which our own mail server recognizes our nodes. It trusts them not to guess the names of inboxes.
import type { SecretBox } from '../../base/secret-box.ts'

const hourMs = 3_600_000
const macBytes = 10

/** `own-<20 hex characters>.<hostname>`, valid for this hour and the next. */
export function ownNameOf(secretBox: SecretBox, hostname: string, at: Date): string {
  return nameOf(secretBox, hostname, Math.floor(at.getTime() / hourMs))
}

/** Whether one of our nodes, which all have the same secret key, made this name in this hour or the last. */
export function isOwnName(secretBox: SecretBox, hostname: string, name: string, at: Date): boolean {
  if (!name.startsWith('own-')) return false
  const hour = Math.floor(at.getTime() / hourMs)
  return [hour, hour - 1].some((made) => name === nameOf(secretBox, hostname, made))
}

function nameOf(secretBox: SecretBox, hostname: string, hour: number): string {
  return `own-${secretBox.digest('own-connection', String(hour), macBytes).toString('hex')}.${hostname}`
}
