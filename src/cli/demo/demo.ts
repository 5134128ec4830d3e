// `posthorn demo`: runs the tour and shows each step as it completes.
import type { Command } from 'commander'
import { loadSettings, type OutputOptions, type Paint, paintFor, remark } from '../context.ts'
import { onStopSignal } from '../stop-signal.ts'
import { TourApi, TourFault, type TourStep } from './api.ts'
import { TourReceiver } from './receiver.ts'
import { findRunning, startTemporary, type TourSite } from './site.ts'
import { walkTour } from './tour.ts'

interface DemoOptions extends OutputOptions {
  fresh?: boolean
}

const demoHelp = `
If a development service runs on this data folder, the tour uses it. The first tour opens the inboxes demo-ada and
demo-ben, which count against the organization's limit, and each tour leaves a few messages in them. Otherwise, and
always if POSTHORN_MAIL_HOST is set, the tour starts its own service in a temporary folder and removes it afterwards.
The attachment is scanned by the clamd of POSTHORN_CLAMD, or by the built-in scanner of development.`

export function addDemoCommand(program: Command): void {
  program
    .command('demo')
    .description('take a guided tour: two inboxes, a message over SMTP, its reply, webhooks, a bounce')
    .option('--fresh', 'start a separate service, even if one is running')
    .option('--json', 'print the steps as one JSON document')
    .addHelpText('after', demoHelp)
    .action(demo)
}

async function demo(options: DemoOptions): Promise<void> {
  const { terminal } = options
  const say = options.json ? () => {} : (text: string) => terminal.console.log(text)
  const settings = loadSettings(options)
  const running = options.fresh ? null : await findRunning(settings)
  if (!running) say('\nStarting a service for this tour, with its own database. This takes a few seconds …')
  const starting = running ? Promise.resolve(running) : startTemporary(settings)
  let receiver: TourReceiver | null = null
  // Nothing that was started may outlive an interrupted tour or an interrupted start.
  const end = async () => {
    const site = await starting
    await receiver?.close()
    await site.leave()
  }
  const ignoreSignals = onStopSignal(() => void end().finally(() => process.exit(1)))
  const site = await starting
  const paint = paintFor(terminal)
  const api = new TourApi(site.http, site.secret)
  receiver = new TourReceiver(api)
  const steps: TourStep[] = []
  try {
    say(introduce(site))
    for await (const step of walkTour(api, receiver)) {
      steps.push(step)
      say(formatStep(step, steps.length, paint))
    }
    if (options.json) terminal.console.log(JSON.stringify(toDocument(site, steps), null, 2))
    say(conclude(site, steps))
  } catch (error) {
    if (!(error instanceof TourFault)) throw error
    remark(options, `posthorn: the tour ended early: ${error.message}`)
    if (site.origin === 'running') remark(options, elsewhere)
    terminal.exitStatus = 1
  } finally {
    await end()
    ignoreSignals()
  }
}

const elsewhere = 'posthorn: to run the tour on a separate service, use posthorn demo --fresh'

const indent = '     '

/** Formats one step for people: title, request, status with time, and excerpt. */
export function formatStep(
  { title, meaning, request, status, excerpt, durationMs }: TourStep,
  number: number,
  paint: Paint,
): string {
  const width = Math.max(...excerpt.map(([name]) => name.length))
  return [
    '',
    `${paint('bold', `${String(number).padStart(3)}  ${title}`)}`,
    `${indent}${paint('dim', meaning)}`,
    '',
    `${indent}${paint('cyan', `${request.method} ${request.path}`)}`,
    ...(request.idempotencyKey
      ? [`${indent}${paint('dim', `idempotency-key: ${request.idempotencyKey}`)}`]
      : []),
    ...(request.body ? [`${indent}${JSON.stringify(request.body)}`] : []),
    `${indent}${paint(status < 400 ? 'green' : 'yellow', `→ ${status}`)}${paint('dim', ` in ${formatDuration(durationMs)}`)}`,
    ...excerpt.map(([name, value]) => `${indent}  ${paint('dim', name.padEnd(width))}  ${value}`),
  ].join('\n')
}

/** Milliseconds, with one decimal below ten. */
export function formatDuration(ms: number): string {
  return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`
}

function introduce({ origin, http }: TourSite): string {
  const where =
    origin === 'running'
      ? `The tour uses the running service at ${http}.`
      : `The tour uses its own service at ${http}.`
  return `\n${where}\nEach step is a request that you can also make with curl and the header x-api-key.`
}

function conclude({ origin, http }: TourSite, steps: TourStep[]): string {
  const total = `\nDone: ${steps.length} steps in ${formatDuration(totalMs(steps))}.`
  const next = {
    running: `Inboxes and messages are kept. ${http}/docs lists every operation.`,
    fresh: 'The service and its folder are being removed. To start one that stays, run posthorn serve.',
  }
  return `${total}\n${next[origin]}\n`
}

function totalMs(steps: TourStep[]): number {
  return steps.reduce((sum, { durationMs }) => sum + durationMs, 0)
}

function toDocument({ origin, http }: TourSite, steps: TourStep[]) {
  const printed = steps.map(({ excerpt: _, durationMs, ...step }) => ({
    ...step,
    durationMs: Math.round(durationMs * 10) / 10,
  }))
  return { service: { origin, http }, steps: printed, durationMs: Math.round(totalMs(steps)) }
}
