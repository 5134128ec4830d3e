// One GET over a connection of its own, plain or by TLS with whatever certificate, with the Host field that is given.
import { once } from 'node:events'
import { get, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import { get as getByTls } from 'node:https'

interface Exact {
  port: number
  path: string
  host?: string
  headers?: Record<string, string>
  scheme?: 'http' | 'https'
  /** From where it is asked; an address of loopback. */
  localAddress?: string
  /** Whom it asks there; this machine's loopback where it does not say. */
  address?: string
}

interface Got {
  status: number
  headers: IncomingHttpHeaders
  text: string
}

export async function getExactly({
  scheme = 'http',
  host,
  address = '127.0.0.1',
  ...asked
}: Exact): Promise<Got> {
  const headers = { ...asked.headers, ...(host !== undefined && { host }) }
  const options = { ...asked, host: address, headers, agent: false }
  const request = scheme === 'http' ? get(options) : getByTls({ ...options, rejectUnauthorized: false })
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  let text = ''
  for await (const chunk of response.setEncoding('utf8')) text += chunk
  return { status: response.statusCode ?? 0, headers: response.headers, text }
}
