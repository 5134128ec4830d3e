// A relay between a client and the service that loses the first answer.
import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import type { Scope } from './until.ts'

/** Passes bytes on. Cuts its first connection when the service has answered, before the client gets a byte. */
export async function startCuttingRelay(scope: Scope, to: URL): Promise<{ url: string; cuts(): number }> {
  let cuts = 0
  const server = createServer((client) => {
    const service = connect(Number(to.port), to.hostname)
    for (const socket of [client, service]) socket.on('error', () => socket.destroy())
    client.pipe(service)
    service.on('data', (bytes) => {
      if (cuts > 0) return void client.write(bytes)
      cuts++
      client.resetAndDestroy()
      service.destroy()
    })
    client.on('close', () => service.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  scope.after(() => void server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, cuts: () => cuts }
}
