// A TCP proxy between a node and its database: a slow link, or one that carries nothing while both ends believe it open.

import type { AddressInfo } from 'node:net'
import { connect, createServer, type Socket } from 'node:net'
import type { Scope } from '../support/until.ts'

export interface SlowLink {
  port: number
  /** The delay of each direction. */
  delayMs: number
  /** From now on, bytes of both directions wait. Both ends keep their connections. */
  freeze(): void
  /** Passes on everything that has waited. */
  thaw(): void
}

/** Listens on `host` until the scope ends, and passes connections on to `target`. */
export async function startSlowLink(
  scope: Scope,
  host: string,
  target: { host: string; port: number },
): Promise<SlowLink> {
  const sockets = new Set<Socket>()
  let frozen: (() => void)[] | null = null
  /** Keeps the order: each piece waits for the former one. */
  const pipe = (from: Socket, to: Socket) => {
    const pass = (write: () => void) => {
      const atMs = performance.now() + link.delayMs
      const deliver = () => (frozen ? void frozen.push(write) : write())
      setTimeout(deliver, Math.max(0, atMs - performance.now()))
    }
    from.on('data', (bytes) => pass(() => to.destroyed || to.write(bytes)))
    from.on('close', () => pass(() => to.destroy()))
    from.on('error', () => {})
  }
  const server = createServer({ noDelay: true }, (near) => {
    const far = connect({ host: target.host, port: target.port, noDelay: true })
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket.on('close', () => sockets.delete(socket))
    }
    pipe(near, far)
    pipe(far, near)
  })
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  scope.after(async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  })
  const link: SlowLink = {
    port: (server.address() as AddressInfo).port,
    delayMs: 0,
    freeze: () => void (frozen ??= []),
    thaw: () => {
      const waiting = frozen ?? []
      frozen = null
      for (const write of waiting) write()
    },
  }
  return link
}
