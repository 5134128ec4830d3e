// A port for a program that is told where to listen, or that comes back to where it was.
import { once } from 'node:events'
import { createServer } from 'node:net'

/**
 * Below those that systems give to connections and to listeners that name none (RFC 6335 6: 49152 and more; Linux: 32768 and
 * more), so that nothing but another caller of this can take it meanwhile: one of 12,000.
 */
const [first, count] = [20_000, 12_000]

/** Nothing listens at the port now, on any address. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = first + Math.floor(Math.random() * count)
    const server = createServer()
    const isFree = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false)).listen(port, () => resolve(true))
    })
    if (!isFree) continue
    server.close()
    await once(server, 'close')
    return port
  }
}
