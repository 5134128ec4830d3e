// Reports about TLS on a node: deliveries count sessions, and the jobs send reports that are due.
import { dropOldReports, sendNextReport } from '../flow/daily-reports.ts'
import { sendOwnReport } from '../flow/sending/send-own.ts'
import { dueTlsReports, sendTlsReport } from '../flow/tls-reports/send-tls-report.ts'
import { TlsSessions } from '../flow/tls-reports/tls-sessions.ts'
import type { Foundation } from '../foundation.ts'
import type { Lookup } from '../mailauth/lookup.ts'
import type { SessionResult } from '../mailauth/tls-report/report.ts'
import { Loop } from '../worker/loop.ts'
import { createOwnAcceptance, type ReportingParts } from './own-acceptance.ts'
import type { Part } from './part.ts'
import { createPoster } from './webhooks.ts'

/** A crash loses counts of up to this period, and of the look-ups after it. */
const flushMs = 5_000
/** For a look-up before a flush, so that a stop waits no longer. */
const lookupMs = 5_000
const pollMs = 60_000

function lookupOf({ resolver }: Foundation): Lookup {
  const asking = resolver.for('tls reports')
  return (type, name) => asking.resolve(type, name, { deadlineMs: lookupMs })
}

/** Counts sessions. Null if no reports are sent. The part must stop after the deliveries. */
export function startTlsSessions(
  foundation: Foundation,
): (Part & { note(domain: string, result: SessionResult): void }) | null {
  const { settings, db, clock, log } = foundation
  if (settings.tlsReports === null || settings.delivery !== 'direct') return null
  const sessions = new TlsSessions({ db, clock, lookup: lookupOf(foundation) })
  const loop = new Loop({ name: 'note tls', run: () => sessions.flush(), intervalMs: flushMs, log })
  loop.start()
  return {
    note: (domain, result) => sessions.note(domain, result),
    stop: async () => {
      await loop.stop()
      await sessions.flush()
    },
  }
}

/** The loop that sends reports. If none are sent, as in a restored copy, the loop deletes earlier counts. */
export function startTlsReports(foundation: Foundation, parts: ReportingParts): Part & { wake(): void } {
  const { settings, db, clock, log, hold } = foundation
  const from = hold ? null : settings.tlsReports
  const name = 'send tls reports'
  if (from === null) {
    const drop = () => dropOldReports({ db, clock }, dueTlsReports)
    return started(new Loop({ name, run: drop, intervalMs: 60 * pollMs, log }))
  }
  const { acceptance, contents } = createOwnAcceptance(foundation, parts)
  const poster = createPoster(foundation)
  const stopping = new AbortController()
  const reporting = {
    db,
    log,
    lookup: lookupOf(foundation),
    reporter: { host: settings.mailHost, email: from },
    send: sendOwnReport.bind(null, { db, clock, acceptance, contents, volume: 'uncounted' }, from),
    post: (url: string, headers: Record<string, string>, body: Buffer) =>
      poster.post(url, headers, body, stopping.signal),
  }
  const daily = {
    db,
    clock,
    log,
    name: 'TLS report',
    reports: dueTlsReports,
    sendReport: sendTlsReport.bind(null, reporting),
  }
  const loop = new Loop({ name, run: () => sendNextReport(daily), intervalMs: pollMs, log })
  return started(loop, async () => {
    stopping.abort()
    await poster.close()
  })
}

function started(loop: Loop, end = async () => {}): Part & { wake(): void } {
  loop.start()
  return {
    wake: () => loop.wake(),
    stop: async () => {
      await Promise.all([loop.stop(), end()])
    },
  }
}
