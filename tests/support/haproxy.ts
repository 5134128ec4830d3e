// HAProxy of a test: its start, and its view of the servers.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { type Scope, until } from './until.ts'

export interface Haproxy {
  /** One row for each server of each proxy, from the statistics. */
  servers(): Promise<Record<string, string>[]>
  /** Reads its files again. Resolves once a new process has answered. */
  reload(): Promise<void>
}

interface Options {
  /** The configuration, and the socket of statistics that it names. */
  file: string
  socket: string
  /** The words that run a command on another machine. */
  enter?: readonly string[]
}

/** Starts HAProxy with a configuration. It ends with the scope. Throws with its words if it ends before. */
export async function startHaproxy(scope: Scope, { file, socket, enter = [] }: Options): Promise<Haproxy> {
  const [program, ...words] = [...enter, 'haproxy', '-W', '-db', '-f', file]
  const child = spawn(program!, words, { stdio: ['ignore', 'ignore', 'pipe'] })
  const said = text(child.stderr)
  scope.after(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    // The master ends its workers. SIGKILL would leave them.
    child.kill('SIGTERM')
    await once(child, 'exit')
  })
  const servers = async () => parseStatistics(await ask(socket, 'show stat\n'))
  const pid = async () => /^Pid: (\d+)/m.exec(await ask(socket, 'show info\n'))?.[1]
  await until('HAProxy to answer', async () => {
    if (child.exitCode !== null) throw new Error(`haproxy: ${await said}`)
    return await servers().catch(() => null)
  })
  return {
    servers,
    reload: async () => {
      const former = await pid()
      child.kill('SIGUSR2')
      await until('the new process', async () => (await pid().catch(() => former)) !== former)
    },
  }
}

/** HAProxy's response to a command at its socket. */
async function ask(socket: string, command: string): Promise<string> {
  const connection = connect(socket)
  await once(connection, 'connect')
  connection.write(command)
  return await text(connection)
}

function parseStatistics(answer: string): Record<string, string>[] {
  const [head = '', ...lines] = answer.replace(/^# /, '').trim().split('\n')
  const names = head.split(',')
  const rows = lines.map((line) => Object.fromEntries(line.split(',').map((value, n) => [names[n]!, value])))
  return rows.filter(({ svname = '' }) => !/^(?:FRONTEND|BACKEND)$/.test(svname))
}
