// `posthorn mcp`: carries MCP messages between standard input and output and the service, for clients without HTTP.
import { once } from 'node:events'
import type { Readable, Writable } from 'node:stream'
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js'
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

/** Runs until standard input ends and every request is answered. */
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
  const remote = new StreamableHTTPClientTransport(mcpUrl(options), {
    requestInit: { headers: { authorization: `Bearer ${key}` } },
  })
  const running = new Set<Promise<void>>()
  client.onmessage = (message) => {
    const sending = remote.send(message).catch(async (error: Error) => {
      const reason = reasonOf(error)
      remark(options, `posthorn: ${reason}`)
      // Without an answer the client would wait for its own time limit.
      if ('method' in message && 'id' in message) await client.send(refusalOf(message.id, reason))
    })
    running.add(sending)
    void sending.finally(() => running.delete(sending))
  }
  remote.onmessage = (message) => {
    const version = versionIn(message)
    if (version !== null) remote.setProtocolVersion(version)
    void client.send(message)
  }
  const ended = once(stdin, 'end')
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

function reasonOf({ message, cause }: Error): string {
  return cause instanceof Error ? `${message}: ${cause.message}` : message
}

/** JSON-RPC 2.0 5.1: the codes from -32000 to -32099 are for servers. */
const unreachable = -32_000

function refusalOf(id: string | number, message: string): JSONRPCMessage {
  return { jsonrpc: '2.0', id, error: { code: unreachable, message } }
}
