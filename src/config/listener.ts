// A listener and its setting: a failure to listen is reported in one line with the setting and the remedy.
import { createServer } from 'node:net'
import { StartRefused } from '../base/errors.ts'
import type { Reader } from './setting-reader.ts'
import { address, formatAddress, type ListenAddress } from './setting-values.ts'

export interface ListenerFault {
  reason: string
  mend: string
}

/** Explains the system's error `code` for a listener at this address. */
export function listenerFault(setting: string, listen: ListenAddress, code: string): ListenerFault {
  const address = formatAddress(listen)
  if (code === 'EADDRINUSE')
    return {
      reason: `${address} is in use by another program`,
      mend: `stop that program, or set ${setting} to another port`,
    }
  if (code === 'EACCES')
    return {
      reason: `this user may not listen on ${address}`,
      mend: `give node CAP_NET_BIND_SERVICE, or set ${setting} to a port above 1023`,
    }
  return {
    reason: `cannot listen on ${address} (${code})`,
    mend: `set ${setting} to an address of this machine`,
  }
}

/** The supervisor of workers, which listens for them, reports `bind`. */
const listenCalls = ['listen', 'bind', 'getaddrinfo']

/** Returns the result of `start`, which must listen there. Throws `StartRefused` if it cannot listen. */
export async function listenAs<Result>(
  setting: string,
  listen: ListenAddress,
  start: () => Promise<Result>,
): Promise<Result> {
  try {
    return await start()
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException
    if (code === undefined || !listenCalls.includes(syscall ?? '')) throw error
    const { reason, mend } = listenerFault(setting, listen, code)
    throw new StartRefused('listener', reason, mend)
  }
}

/** Listens for a moment, in a worker too without its supervisor. Returns the error code, or null if it worked. */
export function tryListening({ host, port }: ListenAddress): Promise<string | null> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
    server.listen({ port, host, exclusive: true }, () => server.close(() => resolve(null)))
  })
}

/** Reads the setting with a listener's address; `usual` if it is not set. */
export function readListener(reader: Reader, name: string, usual: string): ListenAddress {
  return reader.read(name, address(usual)!, address, `one address, such as ${usual}`)
}
