// Attacks by searches that cost the database much, beside a neighbour who sends, receives and signs in.
import { newUuid, type OrganizationId, type PersonId } from '../../src/base/ids.ts'
import { Passwords } from '../../src/flow/people/passwords.ts'
import { addMember } from '../../src/flow/people/sessions.ts'
import { Db } from '../../src/postgres/db.ts'
import { insertPerson } from '../../src/store/people.ts'
import { fillSearched } from '../support/searched-mail.ts'
import { createCaller, type Posthorn } from '../support/service.ts'
import { sendMail } from '../support/smtp-sender.ts'
import type { Scope } from '../support/until.ts'
import { type Attack, inMs, type Outcome, send, setStage } from './attack.ts'

const messages = 60_000
const searches = 100
const password = 'correct horse battery staple'
const email = 'neighbour@far.test'

/** Words of every message: by a phrase, by their beginning, and with filters that nothing passes. */
const queries = [
  'q=w*&direction=outbound',
  'q=%22alpha%20beta%22&from=nobody@far.test',
  'q=%22beta%20alpha%22',
  'q=w1*%20w2*%20w3*',
]

async function addPerson(db: Db, organizationId: OrganizationId): Promise<void> {
  const [id, at] = [newUuid<PersonId>(), new Date()]
  const passwordHash = await new Passwords().hash('127.0.0.1', password)
  await db.transaction(async (tx) => {
    await insertPerson(tx, { id, email, name: 'Ada', passwordHash, confirmedAt: at, createdAt: at })
    await addMember(tx, { organizationId, personId: id, email, role: 'owner', at })
  })
}

async function signIn({ http }: Posthorn): Promise<void> {
  const { status } = await fetch(`${http}/app/v1/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: http },
    body: JSON.stringify({ email, password }),
  })
  if (status !== 200) throw new Error(`the sign-in was ${status}`)
}

type Deed = [name: string, deed: () => Promise<unknown>]

async function slowSearches(scope: Scope): Promise<Outcome> {
  const { posthorn, attacker, victim } = await setStage(scope)
  const db = new Db({ connection: posthorn.database() as never })
  scope.after(() => db.close())
  const inbox = await attacker.createInbox()
  await fillSearched(db, inbox.id, { count: messages })
  await db.query('analyze')
  const { organizationId } = await createCaller(posthorn)
  await addPerson(db, organizationId as OrganizationId)
  const [own, raw] = [await victim.createInbox(), Buffer.from('Subject: x\r\n\r\nHello.\r\n')]
  const deeds: Deed[] = [
    ['send', () => send(victim, own, [own.address])],
    ['RCPT to 250', () => sendMail(posthorn.smtp, { from: 'a@far.test', to: own.address, raw })],
    ['sign-in', () => signIn(posthorn)],
  ]
  // Connections, threads and plans are there, as on a service that runs.
  await timeDeeds(deeds, (round) => round < 1)
  const alone = await timeDeeds(deeds, (round) => round < 5)
  const statuses = new Map<number, number>()
  let answered = 0
  const asked = Array.from({ length: searches }, async (_, n) => {
    const path = `/v1/inboxes/${inbox.id}/messages?${queries[n % queries.length]}`
    const { status } = await attacker.call(path, { timeoutMs: 60_000 })
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
    answered++
  })
  const longest = await timeDeeds(deeds, (round) => round < 3 || (answered < searches && round < 100))
  await Promise.all(asked)
  const answers = [...statuses].map(([status, count]) => `${count} × ${status}`).join(', ')
  const times = deeds.map(([name]) => `${name} ${inMs(longest.get(name)!)} (alone ${inMs(alone.get(name)!)})`)
  return {
    now: `the longest: ${times.join(', ')}; the searches ${answers}`,
    held: [...longest.values()].every((ms) => ms < 1_000),
  }
}

/** Milliseconds of the longest of each deed, which are done one after the other. */
async function timeDeeds(deeds: Deed[], isOn: (round: number) => boolean): Promise<Map<string, number>> {
  const longest = new Map(deeds.map(([name]) => [name, 0]))
  for (let round = 0; isOn(round); round++)
    for (const [name, deed] of deeds) {
      const fromMs = performance.now()
      await deed()
      longest.set(name, Math.max(longest.get(name)!, performance.now() - fromMs))
    }
  return longest
}

export const searchingAttacks: Attack[] = [
  {
    name: `${searches} slow searches of one tenant over ${messages} messages; another sends, is sent to and signs in`,
    before: 'send 15.0 s, RCPT to 250 10.9 s (beside 40 searches)',
    run: slowSearches,
  },
]
