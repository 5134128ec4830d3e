// Attacks by searches that cost the database much, next to a neighbour.
import { Db } from '../../src/postgres/db.ts'
import { fillSearched } from '../support/searched-mail.ts'
import type { Scope } from '../support/until.ts'
import { type Attack, type Outcome, setStage } from './attack.ts'
import { Neighbour, openVisits, proxied } from './neighbour.ts'

const messages = 60_000
const searches = 100

/** Words of every message: as a phrase, by prefix, and with filters that match nothing. */
const queries = [
  'q=w*&direction=outbound',
  'q=%22alpha%20beta%22&from=nobody@far.test',
  'q=%22beta%20alpha%22',
  'q=w1*%20w2*%20w3*',
]

async function slowSearches(scope: Scope): Promise<Outcome> {
  const stage = await setStage(scope, proxied)
  const { posthorn, attacker } = stage
  const db = new Db({ connection: posthorn.database() as never })
  scope.after(() => db.close())
  const inbox = await attacker.createInbox()
  await fillSearched(db, inbox.id, { count: messages })
  await db.query('analyze')
  const neighbour = await Neighbour.settle(stage, await openVisits(scope, posthorn))
  const statuses = new Map<number, number>()
  const search = async (_: unknown, n: number) => {
    const path = `/v1/inboxes/${inbox.id}/messages?${queries[n % queries.length]}`
    const { status } = await attacker.call(path, { timeoutMs: 60_000 })
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
  }
  const waits = await neighbour.during(Promise.all(Array.from({ length: searches }, search)))
  const answers = [...statuses].map(([status, count]) => `${count} × ${status}`).join(', ')
  return { now: `${waits}; the searches ${answers}`, held: waits.isShort }
}

export const searchingAttacks: Attack[] = [
  {
    name: `${searches} slow searches of one tenant over ${messages} messages`,
    before: "another's send 15.0 s, RCPT to 250 10.9 s (beside 40 searches)",
    run: slowSearches,
  },
]
