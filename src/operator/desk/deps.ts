// What the desk is given, and what it hands to its routes.
import type { FastifyRequest } from 'fastify'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import type { deleteOrganization } from '../../flow/accounts/delete-organization.ts'
import { type Actor, operator } from '../../flow/audit.ts'
import type { readOperatorMail } from '../../flow/reading/operator-mail.ts'
import type { Db } from '../../postgres/db.ts'
import type { HttpServer } from '../../web/server.ts'
import type { OperatorMetrics } from '../metrics.ts'
import type { Check } from './schemas/health.ts'

export type Desk = HttpServer

export interface DeskDeps {
  db: Db
  clock: Clock
  log: Log
  blobs: Parameters<typeof deleteOrganization>[0]['blobs']
  /** Reads mail in a thread of its own. */
  parsePool: Parameters<typeof readOperatorMail>[0]['parsePool']
  metrics: OperatorMetrics
  /** What the doctor looks at, over this service; `found` is called with each check as it comes. */
  examine(found: (check: Check) => void): Promise<void>
  settings: {
    /** Where the build of the pages is. */
    pagesFolder: string
    /** How mail leaves. */
    delivery: 'direct' | 'relay' | 'capture'
    managedDomain: string
  }
}

/** Who asks, as the audit log names them. */
export function operatorOf({ ip }: FastifyRequest): Actor {
  return { ...operator, ip }
}
