// The memory of the objects that a test still holds.
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** Returns the bytes of all objects of this thread that can still be reached. */
export function reachableBytes(): number {
  collect()
  return process.memoryUsage().heapUsed
}
