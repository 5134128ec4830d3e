// Waiting for a condition: the only way a test here lets time pass.
import { setTimeout as pause } from 'node:timers/promises'

/** What ends with the test: a `TestContext`, or a script's own list of endings. */
export interface Scope {
  after(end: () => void | Promise<void>): void
}

/**
 * Asks `condition` every `everyMs` (20) until it answers something truthy, and gives that back. Throws, naming `what`,
 * once `timeoutMs` (30,000) have passed.
 */
export async function until<Found>(
  what: string,
  condition: () => Found | Promise<Found>,
  { timeoutMs = 30_000, everyMs = 20 }: { timeoutMs?: number; everyMs?: number } = {},
): Promise<NonNullable<Found>> {
  const deadlineMs = performance.now() + timeoutMs
  for (;;) {
    const found = await condition()
    if (found) return found
    if (performance.now() > deadlineMs) throw new Error(`waited ${timeoutMs} ms in vain for ${what}`)
    await pause(everyMs)
  }
}
