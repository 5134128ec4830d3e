// A port for a program that needs a fixed address, or that must return to the same port.
import { once } from 'node:events'
import { createServer } from 'node:net'

/**
 * Below the ports that systems assign to connections and to listeners without a port (RFC 6335 6: 49152 and more; Linux:
 * 32768 and more). Only another caller of this can take it meanwhile: one of 12,000.
 */
const [first, count] = [20_000, 12_000]

/** Returns a port at which no socket listens, on any address. */
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
