// Accepts the service's own reports: as messages of the inbox that the operator named for them.
import { ProvedDomains } from '../flow/proved-domains.ts'
import { Acceptance } from '../flow/sending/accept-send.ts'
import { SendContents } from '../flow/sending/send-contents.ts'
import type { Foundation } from '../foundation.ts'
import type { ParsePool } from '../mail/parse-pool.ts'
import { createRoutePolicy } from './part.ts'
import type { Signals } from './signals.ts'

export interface ReportingParts {
  parsePool: ParsePool
  signals: Pick<Signals, 'announced'>
}

export function createOwnAcceptance(foundation: Foundation, { parsePool, signals }: ReportingParts) {
  const { settings, db, clock, log, blobs } = foundation
  const contents = new SendContents({ db, clock, blobs, parsePool })
  const acceptance = new Acceptance({
    db,
    clock,
    log,
    blobs,
    // Wakes no delivery: a report is not urgent, so polling finds it.
    accepted: () => signals.announced(),
    domains: new ProvedDomains({ db, clock }),
    lifetimeMs: settings.retryLifetimeMs,
    contents,
    routePolicy: createRoutePolicy(foundation),
  })
  return { acceptance, contents }
}
