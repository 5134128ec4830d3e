// The composition root: builds the parts that the roles need, connects them, and starts, drains and stops them.
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import packageJson from '../package.json' with { type: 'json' }
import { counted } from './base/counted.ts'
import { OwnMark } from './blobs/node-marks.ts'
import { StoreWatch } from './blobs/store-watch.ts'
import { agreedSettings, agreementMend, describeDisagreement } from './config/agreed.ts'
import { listenAs } from './config/listener.ts'
import type { ListenAddress } from './config/setting-values.ts'
import { formatAddress } from './config/setting-values.ts'
import { formerMend, holdWords, type Role, releaseMend } from './config/settings.ts'
import { type ClaimedFolder, claimFolder, joinFolder, requireSharedBlobs } from './data-folder.ts'
import { requireCurrentKey } from './flow/secrets/secret-key.ts'
import type { Foundation } from './foundation.ts'
import { ParsePool } from './mail/parse-pool.ts'
import {
  createOperatorServer,
  type NodePhase,
  type OperatorDeps,
  type OperatorServer,
} from './operator/server.ts'
import { startApi } from './roles/api.ts'
import { startCertificate, startOrders } from './roles/certificate.ts'
import { createSendCache, startCapture, startDelivery } from './roles/delivery.ts'
import { startJobs } from './roles/jobs.ts'
import { createRawCache, startMx } from './roles/mx.ts'
import type { Part } from './roles/part.ts'
import { Signals } from './roles/signals.ts'
import { startWebhooks } from './roles/webhooks.ts'
import { listFormerDomains } from './store/mailbox/inboxes.ts'
import { listDisagreements } from './store/nodes.ts'
import { pagesFolder } from './web/pages-folder.ts'
import { DueWork } from './worker/due-work.ts'
import { Membership } from './worker/membership.ts'
import { Wakes } from './worker/wakes.ts'

/** The listening addresses; null if the role does not run here. */
export interface Listening {
  http: ListenAddress | null
  https: ListenAddress | null
  operator: ListenAddress
  smtp: ListenAddress | null
  submission: ListenAddress | null
  submissions: ListenAddress | null
}

export interface App {
  listening: Listening
  /**
   * Drains the node: `/readyz` is 503 at once. After `POSTHORN_DRAIN_DELAY` the node takes no new work. Work in flight ends
   * within about 25 s, or is handed back.
   */
  stop(): Promise<void>
}

/** Starts the roles of this node. */
export async function startApp(foundation: Foundation, roles: readonly Role[]): Promise<App> {
  const { settings } = foundation
  const parts: Part[] = []
  let phase: NodePhase = 'starting'
  const stop = async () => {
    const isServing = phase === 'serving'
    phase = 'draining'
    // By then, a balancer that polls /readyz sends nothing more.
    if (isServing) await pause(settings.drainDelayMs)
    for (const part of parts.reverse().splice(0)) await part.stop()
  }
  try {
    const { number, release } = await takeFolder(foundation)
    parts.push({ stop: release })
    await requireSharedBlobs(foundation, number)
    await warnOfFormerDomains(foundation)
    warnOfHold(foundation)
    const watch = new StoreWatch(foundation)
    await watch.start()
    parts.push(watch)
    const desk = startOperator(foundation, {
      phase: phaseOf(foundation, () => phase),
      blobFault: () => watch.fault,
    })
    foundation.worker.group?.answerMetrics(desk.readMetrics)
    const operator = await listenAs('POSTHORN_OPERATOR', settings.operator, () =>
      listen(desk.server, settings.operator),
    )
    parts.push({ stop: () => desk.close() })
    const membership = await startMembership(foundation, number, roles, operator)
    parts.push(membership)
    // Checks again, for nodes that start together: the later of two finds the other before it has claimed anything.
    await requireSharedBlobs(foundation, number)
    await warnOfDisagreements(foundation)
    const listening = await startRoles(foundation, roles, { membership, operator, parts })
    phase = 'serving'
    return { listening: { ...listening, operator }, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

/** A worker shares the folder that its supervisor has claimed. */
function takeFolder({ db, settings, worker }: Foundation): Promise<ClaimedFolder> {
  return worker.group ? joinFolder(db, settings.dataDir, worker.number) : claimFolder(db, settings.dataDir)
}

/** Any worker answers `/readyz` for the service, which takes work as long as one of its workers does. */
function phaseOf({ worker: { group } }: Foundation, own: () => NodePhase): () => NodePhase {
  return () => (group?.isServing() ? 'serving' : own())
}

interface Joined {
  membership: Membership
  operator: ListenAddress
  /** Each part is added as soon as it runs, so that a start that fails later stops it. */
  parts: Part[]
}

async function startRoles(
  foundation: Foundation,
  roles: readonly Role[],
  { membership, operator, parts }: Joined,
): Promise<Omit<Listening, 'operator'>> {
  const { hold, settings, db, clock, log } = foundation
  const wakes = new Wakes({ membership, roles, log })
  wakes.start()
  parts.push(wakes)
  const signals = new Signals(wakes)
  const dueWork = new DueWork({ db, clock, log, managedDomain: settings.managedDomain })
  const rawCache = createRawCache(roles, settings.workers, clock)
  const sendCache = createSendCache(roles, settings.workers, clock)
  const certificate = await startCertificate(foundation, roles, parts)
  const smtp = roles.includes('mx') ? await startMx(foundation, certificate, signals, rawCache, parts) : null
  const sends = roles.includes('delivery')
  const capture = sends && settings.delivery === 'capture' ? await startCapture(foundation, parts) : null
  await announce(membership, { smtp, capture })
  // Membership stops after the jobs, because peers would take over the jobs' claims as abandoned. It stops before SMTP, so
  // that peers stop sending to this node before its listener closes.
  parts.push(membership)
  if (roles.includes('jobs'))
    parts.push(startJobs(foundation, certificate, signals, { membership, dueWork, rawCache }))
  const delivery = sends ? await startDelivery(foundation, signals, { membership, dueWork }, sendCache) : null
  if (delivery) parts.push(delivery)
  const calls = roles.includes('webhooks')
    ? await startWebhooks(foundation, certificate, signals, { membership, wakes, dueWork })
    : null
  if (calls) parts.push(calls)
  wakes.onHeard((wake) => {
    signals.heard(wake)
    calls?.wakeHeld(wake.webhooks)
    // A node that delivers acquires the queues without an owner itself.
    if (wake.roles.includes('delivery')) delivery?.wakeHeld(wake.routes)
    else delivery?.wake(wake.routes)
  })
  const wakeQueues = (routes: string[]) => {
    delivery?.wake(routes)
    wakes.send({ routes })
  }
  const needs = { signals, wakeQueues, roles, sendCache, operator, dueWork }
  const isServed = roles.includes('api') || roles.includes('dashboard')
  const served = isServed
    ? await startApi(foundation, certificate, needs, parts)
    : { http: null, https: null, submission: null, submissions: null }
  if (settings.acme && !hold && roles.includes('jobs'))
    parts.push(startOrders(foundation, settings.acme, certificate.changed))
  dueWork.start()
  parts.push(dueWork)
  return { ...served, smtp }
}

/** Null if the folder takes no file, as on a full disk. The node starts, but its peers find no mark. */
async function markBlobs({ blobs, log }: Foundation, folder: number): Promise<OwnMark | null> {
  const mark = new OwnMark(blobs, folder)
  try {
    if (await mark.leave()) mark.publish()
    return mark
  } catch (error) {
    log.warn(
      { err: error },
      'blob store could not be marked: other nodes cannot see that this node shares it',
    )
    return null
  }
}

/** Inboxes on a former managed domain neither receive nor send. Owners see this, but the operator may not know why. */
async function warnOfFormerDomains({ settings: { managedDomain }, db, log }: Foundation): Promise<void> {
  for (const { domain, inboxes } of await listFormerDomains(db, managedDomain))
    log.warn(
      { domain, inboxes },
      `${counted(inboxes, 'inbox', 'inboxes')} on ${domain} cannot receive mail: ${formerMend}`,
    )
}

/** Only the later of two nodes warns. The doctor reports the disagreement for both. */
async function warnOfDisagreements({ settings, db, log }: Foundation): Promise<void> {
  const own = agreedSettings(settings)
  for (const found of await listDisagreements(db, own))
    log.warn(found, `${describeDisagreement(own, found)}: ${agreementMend}`)
}

function warnOfHold({ hold, log }: Foundation): void {
  if (hold) log.warn({ takenAt: hold.takenAt }, `this is a restored copy: ${holdWords}; ${releaseMend}`)
}

/** A mail that takes longer to parse is shown to the operator as text. */
const readingMs = 10_000

function startOperator(
  foundation: Foundation,
  state: Pick<OperatorDeps, 'phase' | 'blobFault'>,
): OperatorServer {
  const { db, clock, log, blobs, worker } = foundation
  const { delivery, managedDomain } = foundation.settings
  return createOperatorServer({
    db,
    clock,
    log,
    blobs,
    ...state,
    collectMetrics: worker.group && (() => worker.group!.collectMetrics()),
    settings: { pagesFolder, delivery, managedDomain },
    // Its thread starts when the first mail is viewed.
    parsePool: new ParsePool({ threads: 1, timeoutMs: readingMs }),
    examine: async (found) => {
      const { examineRunning } = await import('./cli/doctor/examine.ts')
      await examineRunning(foundation, (...checks) => checks.forEach(found))
    },
  })
}

/** Registers this node with its peers, by its mark among the blobs. It takes no mail yet. */
async function startMembership(
  foundation: Foundation,
  folder: number,
  roles: readonly Role[],
  operator: ListenAddress,
): Promise<Membership> {
  const { db, clock, log, settings, worker } = foundation
  const mark = await markBlobs(foundation, folder)
  const agreed = agreedSettings(settings)
  const program = {
    version: packageJson.version,
    roles,
    operator: formatAddress(operator),
    host: worker.name,
    agreed,
  }
  const admit = () => requireCurrentKey(foundation)
  const membership = new Membership({ db, clock, log, mark, program, admit })
  await membership.start()
  return membership
}

/** Publishes the addresses, so that sending nodes find receiving nodes, whatever roles each of them has. */
async function announce(
  membership: Membership,
  { smtp, capture }: { smtp: ListenAddress | null; capture: ListenAddress | null },
): Promise<void> {
  await membership.announce({
    smtp: smtp && formatAddress(smtp),
    capture: capture && formatAddress(capture),
  })
}

async function listen(server: Server, { host, port }: ListenAddress): Promise<ListenAddress> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
  const bound = server.address() as AddressInfo
  return { host: bound.address, port: bound.port }
}
