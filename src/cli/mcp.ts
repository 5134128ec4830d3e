// `posthorn mcp`: carries MCP messages between standard input and output and the service, for clients without HTTP.
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Readable, Writable } from 'node:stream'
import { finished } from 'node:stream/promises'
import type { JSONRPCMessage, JSONRPCRequest } from '@modelcontextprotocol/sdk/types.js'
import { type Command, InvalidArgumentError } from 'commander'
import { StartRefused } from '../base/errors.ts'
import { formatAddress, reachable } from '../config/setting-values.ts'
import { loadSettings, type OutputOptions, remark } from './context.ts'

interface McpOptions extends OutputOptions {
  url?: string
}

export function addMcpCommand(program: Command): void {
  program
    .command('mcp')
    .description('connect an MCP client over standard input and output, with the key in POSTHORN_KEY')
    .option('--url <url>', 'the URL of the service; by default the one of the settings', parseUrl)
    .option('--json', 'print JSON, as always: the messages are JSON')
    .action(carry)
}

function parseUrl(text: string): string {
  if (!/^https?:$/.test(URL.parse(text)?.protocol ?? ''))
    throw new InvalidArgumentError('Write a URL such as https://mail.example.com.')
  return text
}

/** Runs until standard input ends or closes and every request is answered. */
async function carry(options: McpOptions): Promise<void> {
  const { environment, stdin, stdout } = options.terminal
  const key = environment['POSTHORN_KEY']
  if (!key) throw new StartRefused('key', 'an MCP client needs an API key', 'set POSTHORN_KEY')
  if (!stdin)
    throw new StartRefused('input', 'there is no standard input', 'let an MCP client start this command')
  const [{ StdioServerTransport }, { StreamableHTTPClientTransport }] = await Promise.all([
    import('@modelcontextprotocol/sdk/server/stdio.js'),
    import('@modelcontextprotocol/sdk/client/streamableHttp.js'),
  ])
  const client = new StdioServerTransport(stdin as Readable, stdout as Writable)
  // The transport has one signal for all requests.
  const signalOfRequest = new AsyncLocalStorage<AbortSignal>()
  const remote = new StreamableHTTPClientTransport(mcpUrl(options), {
    requestInit: { headers: { authorization: `Bearer ${key}` } },
    fetch: (url, init) => fetch(url, { ...init, signal: signalOfRequest.getStore() ?? init?.signal ?? null }),
  })
  const running = new Set<Promise<void>>()
  const requests = new Map<string | number, AbortController>()
  const request = async (message: JSONRPCRequest): Promise<void> => {
    const cancelling = new AbortController()
    requests.set(message.id, cancelling)
    try {
      await signalOfRequest.run(cancelling.signal, () => remote.send(message))
    } catch (error) {
      if (cancelling.signal.aborted) return
      const reason = reasonOf(error as Error)
      remark(options, `posthorn: ${reason}`)
      // Without an answer the client would wait for its own time limit.
      await client.send(refusalOf(message.id, reason))
    } finally {
      requests.delete(message.id)
    }
  }
  const notify = (message: JSONRPCMessage) =>
    remote.send(message).catch((error: Error) => remark(options, `posthorn: ${reasonOf(error)}`))
  client.onmessage = (message) => {
    const cancelled = cancelledIn(message)
    // The service has no sessions: it ends an operation when the HTTP request is aborted.
    if (cancelled !== null) return requests.get(cancelled)?.abort()
    const passing = 'method' in message && 'id' in message ? request(message) : notify(message)
    running.add(passing)
    void passing.finally(() => running.delete(passing))
  }
  remote.onmessage = (message) => {
    const version = versionIn(message)
    if (version !== null) remote.setProtocolVersion(version)
    void client.send(message)
  }
  // Standard input can be a socket, which can also be reset.
  const ended = finished(stdin, { writable: false }).catch(() => {})
  await Promise.all([remote.start(), client.start()])
  await ended
  await Promise.all(running)
  await remote.close()
}

function mcpUrl(options: McpOptions): URL {
  const base = options.url ?? urlOfSettings(options)
  return new URL(`${base.replace(/\/$/, '')}/mcp`)
}

function urlOfSettings(options: McpOptions): string {
  const { publicUrl, http } = loadSettings(options)
  return publicUrl ?? `http://${formatAddress(reachable(http))}`
}

/** The version that the answer to `initialize` chose. Every later request names it. */
function versionIn(message: JSONRPCMessage): string | null {
  if (!('result' in message)) return null
  const { protocolVersion } = message.result
  return typeof protocolVersion === 'string' ? protocolVersion : null
}

/** The id of the request that the message cancels. */
function cancelledIn(message: JSONRPCMessage): string | number | null {
  if (!('method' in message) || message.method !== 'notifications/cancelled') return null
  return (message.params?.['requestId'] ?? null) as string | number | null
}

function reasonOf({ message, cause }: Error): string {
  return cause instanceof Error ? `${message}: ${cause.message}` : message
}

/** JSON-RPC 2.0 5.1: the codes from -32000 to -32099 are for servers. */
const unreachable = -32_000

function refusalOf(id: string | number, message: string): JSONRPCMessage {
  return { jsonrpc: '2.0', id, error: { code: unreachable, message } }
}
