// Chooses the source of a connection among those of a pool.
import { type Held, type ShapedGroup, Slot } from './group-slots.ts'

/**
 * Takes a connection from one of the groups: the one that may send first, has room, was not said to be blocked, and has the
 * fewest connections. There is one group for each source of a pool. Holds the queue only if every source must wait.
 */
export async function enterOne(
  groups: readonly ShapedGroup[],
  wanted: number,
  signal: AbortSignal,
): Promise<Slot | Held> {
  const order = groups.map((group) => ({ group, waitMs: group.waitMs(wanted), chance: Math.random() }))
  order.sort(
    (a, b) =>
      a.waitMs - b.waitMs ||
      Number(b.group.hasRoom) - Number(a.group.hasRoom) ||
      Number(a.group.isSuspect) - Number(b.group.isSuspect) ||
      a.group.connectionCount - b.group.connectionCount ||
      a.chance - b.chance,
  )
  const { group } = order[0]!
  const entered = await group.enter(signal, wanted)
  if (entered instanceof Slot) entered.rivals = groups.filter((other) => other !== group)
  return entered
}
