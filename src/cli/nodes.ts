// `posthorn nodes`: shows living nodes with their roles, and nodes that ended without leaving.
import type { Command } from 'commander'
import { listNodes, type NodeRow } from '../store/nodes.ts'
import { type OutputOptions, print, table, withFoundation } from './context.ts'
import { inertLine } from './inert-text.ts'

export function addNodesCommand(program: Command): void {
  program
    .command('nodes')
    .description('list living and lost nodes with their host, roles, release and start')
    .option('--json', 'print JSON')
    .action(list)
}

const head = ['NODE', 'HOST', 'STATE', 'RELEASE', 'SINCE', 'ROLES', 'OPERATOR', 'SMTP', 'QUEUES']

async function list(options: OutputOptions): Promise<void> {
  const nodes = await withFoundation(options, ({ db }) => listNodes(db))
  print(options, { nodes }, nodes.length > 0 ? table(head, nodes.map(cells)) : 'No node is running.')
}

function cells({ id, host, isAlive, version, startedAt, roles, operator, smtp, queues }: NodeRow): string[] {
  const since = startedAt.toISOString()
  const state = isAlive ? 'alive' : 'lost'
  return [id, host, state, version, since, roles?.join(','), operator, smtp, queues].map((cell) =>
    inertLine(String(cell ?? '-')),
  )
}
