// Keeps a node by its secret key while that is being changed (posthorn secret rotate), whatever roles it has.
import { KeyFollower } from '../flow/follow-secret-key.ts'
import type { Foundation } from '../foundation.ts'
import { Loop } from '../worker/loop.ts'
import type { Membership } from '../worker/membership.ts'
import type { Part } from './part.ts'

const followMs = 1_000

/** This node has said which keys it has when it resolves. */
export async function startFollowing(
  { db, log, secretBox, settings }: Foundation,
  membership: Membership,
): Promise<Part> {
  const follower = new KeyFollower({ db, log, secretBox, file: settings.secretKeyFile })
  const run = () => follower.follow(membership.nodeId).then(() => false)
  await run()
  const loop = new Loop({ name: 'follow secret key', run, intervalMs: followMs, log })
  loop.start()
  return { stop: () => loop.stop() }
}
