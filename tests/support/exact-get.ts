// Sends one GET over a connection of its own, plain or by TLS with any certificate, with the given Host field.
import { once } from 'node:events'
import { get, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import { get as getByTls } from 'node:https'

interface Exact {
  port: number
  path: string
  host?: string
  headers?: Record<string, string>
  scheme?: 'http' | 'https'
  /** The source address, a loopback address. */
  localAddress?: string
  /** The address to connect to, by default this machine's loopback. */
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
