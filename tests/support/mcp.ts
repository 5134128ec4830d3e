// The official MCP client over HTTP, and how a program reads the results of tools.
import assert from 'node:assert/strict'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js'

/** A connected client. Without sessions there is nothing to close but the client itself. */
export async function connectMcp(base: string, secret: string): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' })
  const headers = { authorization: `Bearer ${secret}` }
  await client.connect(
    new StreamableHTTPClientTransport(new URL(`${base}/mcp`), { requestInit: { headers } }),
  )
  return client
}

export type Arguments = Record<string, unknown>

/** The result of a tool, whether it succeeded or not. */
export async function callTool(client: Client, name: string, given: Arguments = {}): Promise<CallToolResult> {
  return (await client.callTool({ name, arguments: given })) as CallToolResult
}

/** The facts or the content of a successful result. */
export async function want<Result>(client: Client, name: string, given?: Arguments): Promise<Result> {
  const result = await callTool(client, name, given)
  assert.ok(!result.isError, `${name}: ${textOf(result)}`)
  return readResult(textOf(result)) as Result
}

/** The error of a result that must be a refusal. */
export async function wantRefusal(
  client: Client,
  name: string,
  given?: Arguments,
): Promise<{ error: string; message: string; retryAfterSeconds?: number }> {
  const result = await callTool(client, name, given)
  assert.equal(result.isError, true, `${name}: ${textOf(result)}`)
  return JSON.parse(textOf(result))
}

export function textOf({ content }: CallToolResult): string {
  const [first] = content
  assert.equal(first?.type, 'text')
  return first.text
}

/** The JSON of a result: the line between the marks, if it is marked as mail. */
export function readResult(text: string): unknown {
  const lines = text.split('\n')
  if (lines.length === 1) return JSON.parse(text)
  const mark = /^<<<(untrusted-mail-[0-9a-f]{16})$/.exec(lines[1]!)?.[1]
  assert.deepEqual([lines.length, lines[3]], [4, `${mark}>>>`])
  return JSON.parse(lines[2]!)
}
