// Nodes at the desk, the backlog of all nodes, and the metrics of this one.

import { listNodes } from '../../../store/nodes.ts'
import { countScans, readBacklog, readConnections } from '../../../store/sending/backlog.ts'
import type { Desk, DeskDeps } from '../deps.ts'
import { NodeList, Numbers } from '../schemas/node.ts'

/** Counting stops here to save time. Above it, the exact number does not matter. */
const maxCounted = 1_000_000

export function nodeRoutes(desk: Desk, deps: DeskDeps): void {
  desk.get('/desk/v1/nodes', { schema: { response: { 200: NodeList } } }, async () => await present(deps))
  desk.get('/desk/v1/numbers', { schema: { response: { 200: Numbers } } }, async () => ({
    numbers: await deps.metrics.numbers(),
  }))
}

async function present({ db, clock }: DeskDeps): Promise<NodeList> {
  const [nodes, backlog, scans, connections] = await Promise.all([
    listNodes(db),
    readBacklog(db, clock.now(), maxCounted),
    countScans(db, maxCounted),
    readConnections(db),
  ])
  const sum = (name: 'due' | 'later') => backlog.waiting.reduce((total, queue) => total + queue[name], 0)
  return {
    nodes: nodes.map((node) => ({ ...node, roles: node.roles ?? [] })),
    backlog: { ...backlog, scans, due: sum('due'), later: sum('later') },
    connections: {
      open: connections.states.reduce((total, { count }) => total + count, 0),
      max: connections.max,
    },
  }
}
