// DMARC aggregate reports on a node: the mail server counts evaluated mail, and the jobs send reports that are due.

import { dropOldReports, sendNextReport } from '../flow/daily-reports.ts'
import { DmarcNotes } from '../flow/dmarc/dmarc-notes.ts'
import { dueDmarcReports, sendDmarcReport } from '../flow/dmarc/send-reports.ts'
import { sendOwn } from '../flow/sending/send-own.ts'
import type { Foundation } from '../foundation.ts'
import type { DmarcNote } from '../mailauth/dmarc/dmarc-note.ts'
import type { Lookup } from '../mailauth/lookup.ts'
import { Loop } from '../worker/loop.ts'
import { createOwnAcceptance, type ReportingParts } from './own-acceptance.ts'
import type { Part } from './part.ts'

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
export function dmarcReportLoop(foundation: Foundation, parts: ReportingParts): Loop {
  const { settings, db, clock, log } = foundation
  const resolver = foundation.resolver.for('dmarc reports')
  const from = settings.dmarcReports
  const name = 'send dmarc reports'
  if (from === null) {
    const drop = () => dropOldReports({ db, clock }, dueDmarcReports)
    return new Loop({ name, run: drop, intervalMs: 60 * pollMs, log })
  }
  const { acceptance } = createOwnAcceptance(foundation, parts)
  const reporting = {
    db,
    log,
    lookup: ((type, name) => resolver.resolve(type, name)) as Lookup,
    reporter: { host: settings.mailHost, email: from },
    send: sendOwn.bind(null, { db, clock, acceptance, volume: 'uncounted' }, from),
  }
  const daily = {
    db,
    clock,
    log,
    name: 'DMARC report',
    reports: dueDmarcReports,
    sendReport: sendDmarcReport.bind(null, reporting),
  }
  return new Loop({ name, run: () => sendNextReport(daily), intervalMs: pollMs, log })
}
