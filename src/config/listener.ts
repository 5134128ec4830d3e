// A listener as a setting names it: what hinders it is told with the setting and what to write, in one line.
import { createServer } from 'node:net'
import { StartRefused } from '../base/errors.ts'
import type { Reader } from './setting-reader.ts'
import { address, formatAddress, type ListenAddress } from './setting-values.ts'

export interface ListenerFault {
  reason: string
  mend: string
}

/** What the system's `code` means for a listener there. */
export function listenerFault(setting: string, listen: ListenAddress, code: string): ListenerFault {
  const address = formatAddress(listen)
  if (code === 'EADDRINUSE')
    return {
      reason: `${address} is taken by another program`,
      mend: `stop it, or set ${setting} to another port`,
    }
  if (code === 'EACCES')
    return {
      reason: `${address} is not for this user`,
      mend: `give node CAP_NET_BIND_SERVICE, or set ${setting} to a port above 1023`,
    }
  return {
    reason: `${address} cannot be listened on (${code})`,
    mend: `set ${setting} to an address of this machine`,
  }
}

/** What `start` comes to, which listens there; refuses the start where that cannot be. */
export async function listenAs<Result>(
  setting: string,
  listen: ListenAddress,
  start: () => Promise<Result>,
): Promise<Result> {
  try {
    return await start()
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException
    if (code === undefined || (syscall !== 'listen' && syscall !== 'getaddrinfo')) throw error
    const { reason, mend } = listenerFault(setting, listen, code)
    throw new StartRefused('listener', reason, mend)
  }
}

/** Listens for a moment; returns the error code, or null where it worked. */
export function tryListening({ host, port }: ListenAddress): Promise<string | null> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
    server.listen(port, host, () => server.close(() => resolve(null)))
  })
}

/** The setting of where a listener is, `usual` where it is not set. */
export function readListener(reader: Reader, name: string, usual: string): ListenAddress {
  return reader.read(name, address(usual)!, address, `one address, such as ${usual}`)
}
