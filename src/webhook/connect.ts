// Connects to a webhook's host: looks it up once, checks every address, and connects only to checked addresses.
import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { buildConnector } from 'undici'
import { type AddressGuard, hostOf, isLoopback } from './address-guard.ts'

export interface ConnectDeps {
  guard: Pick<AddressGuard, 'allows'>
  /** The addresses of a name, in the order to try them. Rejects with words for people if there are none. */
  lookup(host: string): Promise<string[]>
}

const maxAddresses = 4
const timeoutMs = 10_000

/** A fault whose message may be shown to the customer. */
export class CallFault extends Error {}

/** The function with which undici opens connections. */
export function guardedConnector(deps: ConnectDeps): buildConnector.connector {
  return ({ hostname, protocol, port }, callback) => {
    const url = { host: hostOf({ hostname } as URL), port: Number(port) || 0, isSafe: protocol === 'https:' }
    open(deps, url).then(
      (socket) => callback(null, socket),
      (error: Error) => callback(error, null),
    )
  }
}

interface Target {
  host: string
  port: number
  isSafe: boolean
}

async function open(deps: ConnectDeps, target: Target): Promise<Socket> {
  const deadline = AbortSignal.timeout(timeoutMs)
  const addresses = await findAddresses(deps, target.host)
  // Rebinding: connects only to addresses looked up here. A second look-up could give other addresses.
  const allowed = addresses.filter((address) => deps.guard.allows(address)).slice(0, maxAddresses)
  let fault = new Error('no address')
  if (allowed.length === 0) throw new CallFault('the host has no public address')
  for (const address of allowed) {
    try {
      return await connect(deps, target, address, deadline)
    } catch (error) {
      if (deadline.aborted) throw new CallFault('the connection took too long')
      fault = error as Error
    }
  }
  throw fault
}

async function findAddresses({ lookup }: ConnectDeps, host: string): Promise<string[]> {
  if (isIP(host)) return [host]
  return isLoopback(host) ? ['127.0.0.1', '::1'] : await lookup(host)
}

function connect(
  { guard }: ConnectDeps,
  { host, port, isSafe }: Target,
  address: string,
  signal: AbortSignal,
): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const servername = isIP(host) ? '' : host
    const tcp = { host: address, port: port || (isSafe ? 443 : 80), noDelay: true, keepAlive: true }
    const socket = isSafe
      ? connectTls({ ...tcp, servername, ALPNProtocols: ['http/1.1'], rejectUnauthorized: true })
      : connectTcp(tcp)
    const abort = () => socket.destroy(new CallFault('the connection took too long'))
    signal.addEventListener('abort', abort, { once: true })
    socket.once('error', (error) => {
      signal.removeEventListener('abort', abort)
      reject(error)
    })
    socket.once(isSafe ? 'secureConnect' : 'connect', () => {
      signal.removeEventListener('abort', abort)
      if (guard.allows(socket.remoteAddress ?? '')) return resolve(socket)
      socket.destroy()
      reject(new CallFault('the host has no public address'))
    })
  })
}
