// DMARC aggregate reports on a node: the mail server counts evaluated mail, and the jobs send reports that are due.

import { DmarcNotes } from '../flow/dmarc/dmarc-notes.ts'
import { dropOldReports, sendNextReport } from '../flow/dmarc/send-reports.ts'
import { ProvedDomains } from '../flow/proved-domains.ts'
import { Acceptance } from '../flow/sending/accept-send.ts'
import { SendContents } from '../flow/sending/send-contents.ts'
import { sendOwn } from '../flow/sending/send-own.ts'
import type { Foundation } from '../foundation.ts'
import type { ParsePool } from '../mail/parse-pool.ts'
import type { DmarcNote } from '../mailauth/dmarc/dmarc-note.ts'
import type { Lookup } from '../mailauth/lookup.ts'
import { Loop } from '../worker/loop.ts'
import { isLocal, type Part } from './part.ts'
import type { Signals } from './signals.ts'

/** A crash loses counts of up to this period. */
const flushMs = 5_000
const pollMs = 60_000

/** Counts evaluated mail, or nothing if no reports are sent. The part that it adds must stop after the mail server. */
export function startDmarcNotes(
  { settings, db, clock, log }: Foundation,
  isTrusted: (address: string) => boolean,
  parts: Part[],
): (note: DmarcNote) => void {
  if (settings.dmarcReports === null) return () => {}
  const notes = new DmarcNotes({ db, clock, isTrusted })
  const loop = new Loop({ name: 'note dmarc', run: () => notes.flush(), intervalMs: flushMs, log })
  loop.start()
  parts.push({
    stop: async () => {
      await loop.stop()
      await notes.flush()
    },
  })
  return (note) => notes.note(note)
}

/** Returns the loop that sends reports. If none are sent, the loop deletes earlier counts. */
export function dmarcReportLoop(
  foundation: Foundation,
  { parsePool, signals }: { parsePool: ParsePool; signals: Pick<Signals, 'announced'> },
): Loop {
  const { settings, db, clock, log, blobs } = foundation
  const resolver = foundation.resolver.for('dmarc reports')
  const from = settings.dmarcReports
  const name = 'send dmarc reports'
  if (from === null)
    return new Loop({ name, run: () => dropOldReports({ db, clock }), intervalMs: 60 * pollMs, log })
  const acceptance = new Acceptance({
    db,
    clock,
    log,
    blobs,
    // Wakes no delivery: a report is not urgent, so polling finds it.
    accepted: () => signals.announced(),
    domains: new ProvedDomains({ db, clock }),
    lifetimeMs: settings.retryLifetimeMs,
    contents: new SendContents({ db, clock, blobs, parsePool }),
    routePolicy: { mode: settings.delivery, isLocal: isLocal(settings) },
  })
  const lookup: Lookup = (type, name) => resolver.resolve(type, name)
  const reporter = { host: settings.mailHost, email: from }
  const send = sendOwn.bind(null, { db, clock, acceptance, volume: 'uncounted' }, from)
  const reporting = { db, clock, log, lookup, reporter, send }
  return new Loop({ name, run: () => sendNextReport(reporting), intervalMs: pollMs, log })
}
