// The processes of a service with several workers, as the kernel lists them, and requests that reach all of them.
import { readFileSync } from 'node:fs'
import { request } from 'node:http'
import type { Posthorn } from './service.ts'

/** The pids of the living workers, by number. */
export function workersOf(posthorn: Pick<Posthorn, 'pid'>): Map<number, number> {
  const children = readFileSync(`/proc/${posthorn.pid}/task/${posthorn.pid}/children`, 'utf8')
  const pids = children.split(' ').filter(Boolean).map(Number)
  return new Map(
    pids.flatMap((pid) => {
      const [, number] = /\0--worker\0(\d+)\0/.exec(commandLine(pid)) ?? []
      return number ? [[Number(number), pid] as const] : []
    }),
  )
}

export function isAlive(pid: number): boolean {
  return commandLine(pid) !== ''
}

/** Empty if the process has ended. */
function commandLine(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  } catch {
    return ''
  }
}

export interface FreshAnswer {
  status: number
  body: string
}

interface FreshRequest {
  method?: 'GET' | 'POST'
  headers?: Record<string, string>
  body?: unknown
}

/** Sends one request on a connection of its own, so that any worker may get it. */
export function callFresh(
  url: string,
  { method = 'GET', headers, body }: FreshRequest = {},
): Promise<FreshAnswer> {
  return new Promise((resolve, reject) => {
    const sent = body === undefined ? '' : JSON.stringify(body)
    const type = { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(sent)) }
    const asked = request(url, {
      method,
      agent: false,
      headers: Object.assign({}, headers, sent ? type : {}),
    })
    asked.on('error', reject).on('response', (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', reject)
      response.on('end', () =>
        resolve({ status: response.statusCode!, body: Buffer.concat(chunks).toString('utf8') }),
      )
    })
    asked.end(sent)
  })
}

/** The sums of a metric's series, by worker. */
export async function readByWorker(posthorn: Posthorn, metric: string): Promise<Map<string, number>> {
  const { body } = await callFresh(`${posthorn.operator}/metrics`)
  const sums = new Map<string, number>()
  for (const [, worker, value] of body.matchAll(
    new RegExp(`^${metric}\\{worker="(\\w+)"[^}]*\\} (\\S+)$`, 'gm'),
  ))
    sums.set(worker!, (sums.get(worker!) ?? 0) + Number(value))
  return sums
}
