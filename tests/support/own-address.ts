// An address that a service gets again after each start.
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'

/** `127.0.0.1:port`. The port is below those that port 0 assigns, so that no other process gets it while ours is down. */
export async function ownAddress(): Promise<string> {
  for (;;) {
    const port = randomInt(20_000, 32_000)
    const server = createServer().listen(port, '127.0.0.1')
    const isFree = await once(server, 'listening').then(
      () => true,
      () => false,
    )
    server.close()
    if (isFree) return `127.0.0.1:${port}`
  }
}
