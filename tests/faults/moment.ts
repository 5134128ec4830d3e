// The moments of kills: random ones, and those at which an answer is pending.
import { setTimeout as pause } from 'node:timers/promises'
import type { Sink } from '../support/sink.ts'
import type { Load } from './load.ts'

/**
 * Waits for the moment of the kill with this number. This is a random moment, or in turn one at which an answer is pending:
 * to a mail's final dot, to a request, or to the last byte of a message at the sink. At the last of these it kills at once.
 */
export async function reachMoment(
  { sink, load, random }: { sink: Sink; load: Load; random: () => number },
  number: number,
  kill: () => void,
): Promise<void> {
  await pause(50 + 1800 * random())
  const usualRule = sink.rule
  const { promise: fallen, resolve: fall } = Promise.withResolvers<void>()
  // If no answer becomes pending, any moment will do.
  const timer = setTimeout(fall, 5000)
  const turn = number % 5
  if (turn === 0 || turn === 4) fall()
  if (turn === 1) load.watch = (left) => left === 'dot' && setTimeout(fall, 6 * random())
  if (turn === 2) load.watch = (left) => left === 'request' && setTimeout(fall, 6 * random())
  if (turn === 3) {
    sink.rule = (step) => {
      if (step.stage === 'message') {
        // At once, so that no later 250 of the sink is read.
        kill()
        fall()
      }
      return usualRule(step)
    }
  }
  await fallen
  clearTimeout(timer)
  load.watch = null
  sink.rule = usualRule
}
