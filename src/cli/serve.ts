// `posthorn serve` and `posthorn migrate`.

import { once } from 'node:events'
import { flushCompileCache } from 'node:module'
import { type Command, InvalidArgumentError, Option } from 'commander'
import type { App } from '../app.ts'
import { createLog, type Log } from '../base/log.ts'
import { roles as allRoles, parseRoles, type Role, readSettings, type Settings } from '../config/settings.ts'
import { type Foundation, openFoundation } from '../foundation.ts'
import { type OwnWorker, onlyWorker, workerName } from '../own-worker.ts'
import { loadSettings, type OutputOptions, print, remark } from './context.ts'
import { hardStopMs, listenForStop, type Stop } from './stop-signal.ts'
import { type ServeOptions, welcome } from './welcome.ts'

export function addServeCommands(program: Command): void {
  program
    .command('serve', { isDefault: false })
    .description('run the service until it receives SIGINT or SIGTERM')
    .addOption(
      new Option('--roles <a,b>', 'run only these roles').choices(allRoles).argParser<Role[]>(requireRoles),
    )
    .addOption(new Option('--worker <number>').argParser(Number).hideHelp())
    .option('--json', 'print one JSON line when ready, and nothing else')
    .action(serve)
  program
    .command('migrate')
    .description('update the database schema, as serve does at its start')
    .option('--json', 'print JSON')
    .action(migrateOnly)
}

async function serve(options: ServeOptions): Promise<void> {
  if (options.worker !== undefined) return await serveAsWorker(options.worker, options)
  const settings = loadSettings(options)
  if (settings.workers > 1) return await (await import('./workers/supervise.ts')).supervise(options, settings)
  const log = createLog(settings.logLevel, settings.logFormat)
  // Before the embedded PostgreSQL starts: from then on, a signal that killed this process would leave it running.
  const stop = listenForStop(log, settings.drainDelayMs + hardStopMs)
  await runNode({ options, settings, log, stop }, onlyWorker, ({ foundation, app, roles }) =>
    welcome({ options, foundation, roles, stop }, app.listening),
  )
}

async function serveAsWorker(number: number, options: ServeOptions): Promise<void> {
  const { joinGroup } = await import('./workers/join-group.ts')
  // The supervisor has read `.env`, which may have changed since.
  const settings = readSettings(options.terminal.environment, options.terminal.folder)
  const log = createLog(settings.logLevel, settings.logFormat, undefined, workerName(number))
  const stop = listenForStop(log, settings.drainDelayMs + hardStopMs)
  const { own, ready } = joinGroup(number, stop.begin)
  await runNode({ options, settings, log, stop }, own, async ({ app }) => ready(app.listening))
}

interface Running {
  foundation: Foundation
  app: App
  roles: readonly Role[]
}

/** Runs this process as a node until it stops. Calls `started` when it takes work. */
async function runNode(
  { options, settings, log, stop }: { options: ServeOptions; settings: Settings; log: Log; stop: Stop },
  worker: OwnWorker,
  started: (running: Running) => Promise<void>,
): Promise<void> {
  const foundation = await openFoundation(settings, log, (line) => remark(options, line), worker)
  if (stop.signal.aborted) return await foundation.close()
  const roles = options.roles ?? settings.roles
  let app: App
  try {
    // Other commands start three times as fast without it.
    const { startApp } = await import('../app.ts')
    app = await startApp(foundation, roles)
  } catch (error) {
    await foundation.close()
    throw error
  }
  if (!stop.signal.aborted) await started({ foundation, app, roles })
  flushCompileCache() // now, because a killed process never gets to it at its end
  if (!stop.signal.aborted) await once(stop.signal, 'abort')
  await app.stop()
  await foundation.close()
  process.exit(0)
}

async function migrateOnly(options: OutputOptions): Promise<void> {
  const settings = loadSettings(options)
  const log = createLog('warn', settings.logFormat, options.terminal.stderr)
  const foundation = await openFoundation(settings, log, (line) => remark(options, line))
  const rows = await foundation.db.query<{ name: string }>(
    'select name from schema_migration order by version',
  )
  await foundation.close()
  print(
    options,
    { migrations: rows.map(({ name }) => name) },
    `The schema is up to date (${rows.at(-1)?.name}).`,
  )
}

function requireRoles(text: string): Role[] {
  const roles = parseRoles(text)
  if (!roles) throw new InvalidArgumentError(`Roles are ${allRoles.join(', ')}.`)
  return roles
}
