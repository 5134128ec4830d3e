// Runs the workers of a service: starts them, replaces those that end, drains them, and counts their common limits.
import type { SendHandle } from 'node:child_process'
import cluster, { type Worker } from 'node:cluster'
import type { Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import type { Listening } from '../../app.ts'
import { backoffMs } from '../../base/backoff.ts'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { within } from '../../base/within.ts'
import { readOwnMetrics, type WorkerMetrics } from '../../operator/metrics.ts'
import type { SupervisorCalls, WorkerCalls } from './calls.ts'
import { Channel, type Frame } from './channel.ts'
import { GroupLimits } from './group-limits.ts'
import { SharedListeners } from './shared-listeners.ts'

/** A worker that ends sooner after its start has crashed. */
const quickEndMs = 10_000
/** The service ends after this many crashes of a worker in a row. */
const maxQuickEnds = 3
/** A start that is refused, as while the database fails over, is tried again for about a minute. The others go on. */
const maxRefusals = 15
const restartMs = [1_000, 2_000, 5_000]
/** A worker that leaves three beats unanswered hangs. Other nodes count it as lost after the same time. */
const beatMs = 5_000
const maxBeats = 3
/** A worker that does not answer by then, because it hangs, is missing from the metrics. */
const metricsMs = 2_000

export interface SupervisorOptions {
  clock: Clock
  log: Log
  count: number
  /** The arguments of a worker's process. */
  wordsFor(number: number): string[]
  /** The settings of all workers, so that a worker that replaces another has the same. */
  environment: NodeJS.ProcessEnv
}

type ToWorker = Channel<WorkerCalls, SupervisorCalls>

/** A worker's number, and the process that has it now. */
interface Slot {
  number: number
  worker: Worker | null
  channel: ToWorker | null
  /** Notes the connections on their way to the process. Returns a function that refuses those still on their way. */
  noteSent(): () => void
  /** Null until the first process of this number took work. */
  listening: Listening | null
  isReady: boolean
  quickEnds: number
  /** Null until the process has joined. */
  unansweredBeats: number | null
}

export class Supervisor {
  readonly #options: SupervisorOptions
  readonly #limits: GroupLimits
  readonly #listeners: SharedListeners
  readonly #slots: Slot[]
  readonly #failure = Promise.withResolvers<string>()
  /** Settled for each change of a slot. */
  #changed = Promise.withResolvers<void>()
  #isStopping = false

  constructor(options: SupervisorOptions) {
    this.#options = options
    this.#limits = new GroupLimits(options)
    this.#listeners = new SharedListeners(options.log)
    this.#slots = Array.from({ length: options.count }, (_, index) => newSlot(index + 1))
    // A second signal, or an error of ours, ends the workers too.
    process.once('exit', () => {
      for (const { worker } of this.#slots) worker?.process.kill('SIGKILL')
    })
    setInterval(() => this.#beat(), beatMs).unref()
  }

  /** Resolves with the reason when the service must end, because a worker cannot run. */
  get failure(): Promise<string> {
    return this.#failure.promise
  }

  /**
   * Starts the first worker, and once it takes work, all others. So a wrong setting is reported once. Resolves when all take
   * work, with their listeners. Resolves with null if `stop` was called meanwhile, or a worker failed.
   */
  async start(): Promise<Listening | null> {
    const [first, ...others] = this.#slots
    this.#begin(first!)
    if (!(await this.#untilReady([first!]))) return null
    for (const slot of others) this.#begin(slot)
    return (await this.#untilReady(others)) ? first!.listening : null
  }

  /** Drains all workers. Resolves when their processes have ended. */
  async stop(): Promise<void> {
    this.#isStopping = true
    this.#listeners.stop()
    this.#note()
    for (const { channel } of this.#slots) channel?.post('stop')
    while (this.#slots.some(({ worker }) => worker)) await this.#changed.promise
  }

  async #untilReady(slots: readonly Slot[]): Promise<boolean> {
    const failed = this.failure.then(() => true)
    while (!this.#isStopping) {
      if (slots.every(({ listening }) => listening)) return true
      if (await Promise.race([failed, this.#changed.promise.then(() => false)])) return false
    }
    return false
  }

  #begin(slot: Slot): void {
    const { wordsFor, environment } = this.#options
    cluster.setupPrimary({ args: wordsFor(slot.number), serialization: 'advanced' })
    const worker = cluster.fork(environment)
    const startedMs = performance.now()
    const limits = this.#limits.forWorker()
    const listeners = this.#listeners.forWorker((connection, socket) =>
      worker.process.send({ connection }, rawOf(socket), {}, () => {}),
    )
    const channel: ToWorker = new Channel(
      // If the worker is gone, `exit` follows.
      (frames) => void worker.process.send(frames as never, undefined, {}, () => {}),
      {
        ...limits.calls,
        ...listeners.calls,
        joined: () => {
          slot.unansweredBeats = 0
          channel.post('announce', this.#state)
          if (this.#isStopping) channel.post('stop')
        },
        ready: (listening) => {
          slot.isReady = true
          slot.listening ??= listening
          this.#note()
        },
        collectMetrics: () => this.#collectMetrics(),
      },
    )
    Object.assign(slot, { worker, channel, noteSent: listeners.noteSent })
    worker.on('message', (frames: Frame[]) => channel.receive(frames))
    const end = (how: string, code?: number) => {
      if (slot.worker !== worker) return
      channel.close()
      limits.release()
      listeners.release()
      const most = code === 1 && !slot.isReady ? maxRefusals : maxQuickEnds
      Object.assign(slot, { worker: null, channel: null, isReady: false, unansweredBeats: null })
      this.#note()
      if (!this.#isStopping) void this.#replace(slot, { how, most, livedMs: performance.now() - startedMs })
    }
    worker.on('exit', (code, signal) => end(signal ? `by ${signal}` : `with status ${code}`, code))
    worker.on('error', ({ message }) => {
      // A process that has started ends with an `exit`.
      if (worker.process.pid === undefined) end(`because it could not start (${message})`)
    })
  }

  /** Asks each worker for a sign of life, and kills one that hangs. Its exit follows. */
  #beat(): void {
    for (const slot of this.#slots) {
      const { number, worker, channel, unansweredBeats } = slot
      if (!channel || unansweredBeats === null) continue
      if (unansweredBeats === maxBeats) {
        this.#options.log.warn({ worker: number }, 'worker hangs: it is killed')
        worker?.process.kill('SIGKILL')
        continue
      }
      slot.unansweredBeats = unansweredBeats + 1
      const refuseLost = slot.noteSent()
      const answered = () => {
        if (slot.channel !== channel) return
        slot.unansweredBeats = 0
        // Connections sent before the beat have arrived before it, or never will: the worker is out of descriptors.
        refuseLost()
      }
      // A worker that has ended answers no more.
      channel.ask('beat').then(answered, () => {})
    }
  }

  /** Starts another process for the slot, unless `most` of them ended soon after their start. */
  async #replace(
    slot: Slot,
    { how, most, livedMs }: { how: string; most: number; livedMs: number },
  ): Promise<void> {
    const { number } = slot
    if (!slot.listening) {
      this.#failure.resolve(`worker ${number} ended ${how} before it was ready`)
      return
    }
    slot.quickEnds = livedMs < quickEndMs ? slot.quickEnds + 1 : 0
    if (slot.quickEnds >= most) {
      const seconds = quickEndMs / 1_000
      this.#failure.resolve(
        `worker ${number} ended ${slot.quickEnds} times within ${seconds} s of its start, the last time ${how}`,
      )
      return
    }
    this.#options.log.warn({ worker: number }, `worker ended ${how}: another process replaces it`)
    if (slot.quickEnds > 1) await pause(backoffMs(restartMs, slot.quickEnds - 1))
    if (!this.#isStopping) this.#begin(slot)
  }

  get #state(): 'serving' | 'not serving' {
    return !this.#isStopping && this.#slots.some(({ isReady }) => isReady) ? 'serving' : 'not serving'
  }

  /** Wakes those who wait for a change, and announces to the workers whether the service takes work. */
  #note(): void {
    this.#changed.resolve()
    this.#changed = Promise.withResolvers()
    for (const { channel } of this.#slots) channel?.post('announce', this.#state)
  }

  async #collectMetrics(): Promise<WorkerMetrics[]> {
    const ofWorkers = this.#slots.map(async ({ number, channel }) => {
      const worker = String(number)
      if (!channel) return { worker, metrics: [] }
      const asked = channel.ask('readMetrics').catch(() => [])
      return { worker, metrics: await within(metricsMs, asked, () => []) }
    })
    // The supervisor refuses peers, and does no other work of the service.
    const own = (await readOwnMetrics()).filter(
      ({ name }) => !name.startsWith('posthorn_') || name === 'posthorn_peers_refused_total',
    )
    return [{ worker: 'supervisor', metrics: own }, ...(await Promise.all(ofWorkers))]
  }
}

function newSlot(number: number): Slot {
  return {
    number,
    worker: null,
    channel: null,
    noteSent: () => () => {},
    listening: null,
    isReady: false,
    quickEnds: 0,
    unansweredBeats: null,
  }
}

/** The connection itself. Node would tie the socket around it to this process. */
function rawOf(socket: Socket): SendHandle {
  return Reflect.get(socket, '_handle')
}
