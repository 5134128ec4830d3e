// The dependencies of the desk and of its routes.
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
  /** Reads mail in a separate thread. */
  parsePool: Parameters<typeof readOperatorMail>[0]['parsePool']
  metrics: OperatorMetrics
  /** Runs the doctor's checks on this service. Calls `found` with each check as it completes. */
  examine(found: (check: Check) => void): Promise<void>
  settings: {
    /** The folder of the built pages. */
    pagesFolder: string
    /** The delivery mode. */
    delivery: 'direct' | 'relay' | 'capture'
    managedDomain: string
  }
}

/** The operator as an actor of the audit log. */
export function operatorOf({ ip }: FastifyRequest): Actor {
  return { ...operator, ip }
}
