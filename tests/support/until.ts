// Waiting for a condition: the only way in which a test here lets time pass.
import { setTimeout as pause } from 'node:timers/promises'

/** Runs cleanup at the end of a test: a `TestContext`, or a script's own list. */
export interface Scope {
  after(end: () => void | Promise<void>): void
}

/**
 * Calls `condition` every `everyMs` (20) until it returns a truthy value, and returns that value. Throws, naming `what`,
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

/** A scope within `scope` that ends its resources in reverse order. */
export function inReverse(scope: Scope): Scope {
  const endings: (() => void | Promise<void>)[] = []
  scope.after(async () => {
    for (const end of endings.reverse()) await end()
  })
  return { after: (end) => void endings.push(end) }
}
