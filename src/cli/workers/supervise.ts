// `posthorn serve` with several workers: opens the database and claims the folder for all of them, and supervises them.
import { once } from 'node:events'
import { StartRefused } from '../../base/errors.ts'
import { createLog } from '../../base/log.ts'
import { readEnvironment, type Settings } from '../../config/settings.ts'
import { claimFolder } from '../../data-folder.ts'
import { type Foundation, openFoundation } from '../../foundation.ts'
import { remark } from '../context.ts'
import { hardStopMs, listenForStop, type Stop } from '../stop-signal.ts'
import { type ServeOptions, welcome } from '../welcome.ts'
import { Supervisor } from './supervisor.ts'

/** Longer than a worker has for its own stop, so that only a worker that hangs is killed. */
const stopMarginMs = 1_000

/** Runs the service until a signal, or until a worker fails again and again. */
export async function supervise(options: ServeOptions, settings: Settings): Promise<void> {
  const log = createLog(settings.logLevel, settings.logFormat)
  const stop = listenForStop(log, settings.drainDelayMs + hardStopMs + stopMarginMs)
  const foundation = await openFoundation(settings, log, (line) => remark(options, line))
  let failure: string | null
  try {
    failure = stop.signal.aborted ? null : await runWorkers(options, foundation, stop)
  } finally {
    await foundation.close()
  }
  if (failure !== null)
    throw new StartRefused('workers', failure, 'its messages are above; correct their cause, and start again')
  process.exit(0)
}

/** Returns why the service had to end; null if it was stopped. */
async function runWorkers(options: ServeOptions, foundation: Foundation, stop: Stop): Promise<string | null> {
  const { settings, db, clock, log } = foundation
  const folder = await claimFolder(db, settings.dataDir)
  const { folder: current, environment } = options.terminal
  const words = ['serve', ...(options.roles ? ['--roles', options.roles.join(',')] : [])]
  const supervisor = new Supervisor({
    clock,
    log,
    count: settings.workers,
    wordsFor: (number) => [...words, '--worker', String(number)],
    environment: readEnvironment(current, environment),
  })
  const stopped = stop.signal.aborted ? null : once(stop.signal, 'abort').then(() => null)
  const listening = stopped && (await Promise.race([stopped, supervisor.start()]))
  const roles = options.roles ?? settings.roles
  if (listening) await welcome({ options, foundation, roles, stop }, listening)
  const failure = await Promise.race([stopped, supervisor.failure])
  stop.begin('a worker failed')
  await supervisor.stop()
  await folder.release()
  return failure
}
