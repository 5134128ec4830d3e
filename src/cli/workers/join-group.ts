// A worker's side of its service: asks the supervisor, and stops when the supervisor says so or has ended.
import cluster from 'node:cluster'
import type { Listening } from '../../app.ts'
import { StartRefused } from '../../base/errors.ts'
import type { WorkerMetric } from '../../operator/metrics.ts'
import { type OwnWorker, type WorkerGroup, workerName } from '../../own-worker.ts'
import { reply } from '../../smtp/reply.ts'
import type { Peers, SmtpDoor } from '../../smtp/server/peers.ts'
import type { SupervisorCalls, WorkerCalls } from './calls.ts'
import { Channel, type Frame } from './channel.ts'
import { type Connection, listenThrough } from './listen-in-worker.ts'

const unanswered = reply(421, '4.3.2', 'Shutting down, try again later')

export interface JoinedWorker {
  own: OwnWorker
  ready(listening: Listening): void
}

/** Joins the service as its worker of this number. `stop` is called when the worker must drain. */
export function joinGroup(number: number, stop: (reason: string) => void): JoinedWorker {
  const { worker } = cluster
  if (!worker)
    throw new StartRefused(
      'workers',
      '--worker is only for the supervisor',
      'set POSTHORN_WORKERS, and run posthorn serve without it',
    )
  // Otherwise Node ends this process at once if the supervisor dies, and mail in progress with it.
  worker.exitedAfterDisconnect = true
  let isServing = false
  let readMetrics: () => Promise<WorkerMetric[]> = async () => []
  const answers: WorkerCalls = {
    beat: () => {},
    stop: () => stop('the service stops'),
    announce: (state) => {
      isServing = state === 'serving'
    },
    readMetrics: () => readMetrics(),
  }
  const supervisor = new Channel<SupervisorCalls, WorkerCalls>(
    // If the supervisor is gone, `disconnect` follows.
    (frames) => void process.send?.(frames, undefined, {}, () => {}),
    answers,
  )
  const take = listenThrough({
    listen: (query) => supervisor.ask('listen', query),
    unlisten: (key) => supervisor.post('unlisten', key),
    took: (key) => supervisor.post('took', key),
    refused: (key) => supervisor.post('refused', key),
  })
  process.on('message', (message: Frame[] | { connection: string }, connection: unknown) => {
    if (Array.isArray(message)) supervisor.receive(message)
    else take(message.connection, connection as Connection)
  })
  supervisor.post('joined')
  process.on('disconnect', () => {
    isServing = false
    supervisor.close()
    stop('the supervisor has ended')
  })
  // A start that fails must end this process.
  process.channel?.unref()
  const group: WorkerGroup = {
    ...limitsBy(supervisor),
    isServing: () => isServing,
    answerMetrics: (read) => {
      readMetrics = read
    },
    collectMetrics: () =>
      supervisor
        .ask('collectMetrics')
        .catch(async () => [{ worker: String(number), metrics: await readMetrics() }]),
  }
  const own = { name: workerName(number), number, group }
  return { own, ready: (listening) => supervisor.post('ready', listening) }
}

/** No answer comes once the supervisor has ended. Then peers are sent away, and requests are answered for the drain. */
function limitsBy(
  supervisor: Channel<SupervisorCalls, WorkerCalls>,
): Pick<WorkerGroup, 'peers' | 'networks' | 'lookups'> {
  return {
    peers: { mx: peersBy(supervisor, 'mx'), submission: peersBy(supervisor, 'submission') },
    networks: {
      take: (network) => supervisor.ask('takeConnection', network).catch(() => true),
      give: (network) => supervisor.post('giveConnection', network),
    },
    lookups: { take: (asker, count) => supervisor.ask('takeLookups', asker, count).catch(() => null) },
  }
}

function peersBy(supervisor: Channel<SupervisorCalls, WorkerCalls>, door: SmtpDoor): Peers {
  return {
    admit: (address) => supervisor.ask('admitPeer', door, address).catch(() => unanswered),
    leave: (address) => supervisor.post('leavePeer', door, address),
    refusal: (address) => supervisor.ask('refusePeer', door, address).catch(() => unanswered),
    beginMessage: (address) => supervisor.ask('beginMessage', door, address).catch(() => unanswered),
    answer: (address, misdeed) =>
      supervisor.ask('answerPeer', door, address, misdeed).catch(() => unanswered),
    note: (address, misdeed) => supervisor.post('notePeer', door, address, misdeed),
    noteTaken: (address) => supervisor.post('noteTaken', door, address),
  }
}
