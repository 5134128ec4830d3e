// A worker's listeners: its servers listen as in any process, but the supervisor has the sockets and sends connections.
import cluster from 'node:cluster'
import type { AddressInfo, Server } from 'node:net'
import type { Listened, ListenQuery } from './calls.ts'

/** The part of a listening socket that a server of Node uses. */
interface ListeningSocket {
  onconnection?: (status: number, connection: Connection) => void
  getsockname(out: Partial<AddressInfo>): number
  listen(): number
  close(): void
  ref(): void
  unref(): void
}

/** An accepted connection, before Node has made a socket of it. */
export interface Connection {
  close(): void
}

type Query = Omit<ListenQuery, 'index'> & { addressType: unknown; fd?: number | null }
type GetServer = (
  server: Server,
  query: Query,
  done: (errno: number, socket: ListeningSocket | null) => void,
) => void

interface Supervisor {
  listen(query: ListenQuery): Promise<Listened>
  unlisten(key: string): void
  took(key: string): void
  refused(key: string): void
}

/** Returns what takes a connection. From now on, servers of this process listen through the supervisor. */
export function listenThrough(supervisor: Supervisor): (key: string, connection: Connection) => void {
  const open = new Map<string, ListeningSocket>()
  const counts = new Map<string, number>()
  // Node's own server asks this method for the socket. Node's distribution loses connections with a worker.
  const node = cluster as unknown as { _getServer: GetServer }
  const former = node._getServer
  node._getServer = (server, query, done) => {
    if (query.addressType !== 4 && query.addressType !== 6) return former.call(node, server, query, done)
    const { address, port, backlog } = query
    // Two servers may ask for any port of the same address.
    const asked = `${address} ${port}`
    const index = port === 0 ? (counts.get(asked) ?? 0) : 0
    counts.set(asked, index + 1)
    // An open socket keeps a process alive, and so does this.
    const alive = setInterval(() => {}, 2 ** 30)
    const opened = (listened: Listened) => {
      if (typeof listened === 'number') {
        clearInterval(alive)
        return done(listened, null)
      }
      const { key, bound } = listened
      const closed = () => {
        open.delete(key)
        supervisor.unlisten(key)
      }
      const socket = socketOf(bound, alive, closed)
      open.set(key, socket)
      done(0, socket)
    }
    // If the supervisor has ended, so does this process.
    supervisor.listen({ address, port, backlog, index }).then(opened, () => clearInterval(alive))
  }
  return (key, connection) => {
    const socket = open.get(key)
    if (!socket?.onconnection) {
      supervisor.refused(key)
      connection.close()
      return
    }
    supervisor.took(key)
    socket.onconnection(0, connection)
  }
}

function socketOf(bound: AddressInfo, alive: NodeJS.Timeout, closed: () => void): ListeningSocket {
  return {
    getsockname: (out) => {
      Object.assign(out, bound)
      return 0
    },
    listen: () => 0,
    close: () => {
      clearInterval(alive)
      closed()
    },
    ref: () => void alive.ref(),
    unref: () => void alive.unref(),
  }
}
