// Attacks on resources that all tenants share: account mails, the resolver, password hashes, the operator's mailbox.
import { setTimeout as pause } from 'node:timers/promises'
import { lastToken, lettersTo, password, Visitor } from '../http/app/visitor.ts'
import type { Scope } from '../support/until.ts'
import { type Attack, inMs, measureDelivery, type Outcome, type Stage, send, setStage } from './attack.ts'
import { converse, Neighbour, openVisits, proxied, type Visits } from './neighbour.ts'

interface Scene {
  stage: Stage
  visits: Visits
  neighbour: Neighbour
}

async function setScene(scope: Scope): Promise<Scene> {
  const stage = await setStage(scope, proxied)
  const visits = await openVisits(scope, stage.posthorn)
  return { stage, visits, neighbour: await Neighbour.settle(stage, visits) }
}

/** Invites and withdraws from an organization without approval, and from an active one. */
async function openMailer(scope: Scope): Promise<Outcome> {
  const { stage, visits, neighbour } = await setScene(scope)
  const attacker = new Visitor(visits)
  await attacker.signUp('attacker@healthy.test')
  const name = 'Your account is locked - verify now at https://evil.test/ or lose all funds'
  await attacker.want('/organizations', { method: 'POST', status: 201, body: { name } })
  const { id } = (await attacker.reload()).organization!
  const invite = async (count: number) => {
    let letters = 0
    for (let n = 0; n < count; n++) {
      const body = { email: `target-${n}@healthy.test`, role: 'member' }
      const answer = await attacker.post<{ id: string }>('/invitations', body)
      if (answer.status !== 201) continue
      letters++
      await attacker.call(`/invitations/${answer.body.id}`, { method: 'DELETE' })
    }
    return letters
  }
  const counts: number[] = []
  const waits = await neighbour.during(
    (async () => {
      counts.push(await invite(120))
      await stage.posthorn.cli(['org', 'approve', id])
      await attacker.reload()
      counts.push(await invite(120))
    })(),
  )
  const [pending = 0, active = 0] = counts
  const asked = await new Visitor(visits).post('/resets', { email: 'neighbour@healthy.test' })
  const subjects = (await lettersTo(visits, 'target-0@healthy.test')).map(({ subject }) => subject)
  const isOurs = subjects.every((subject) => !subject.includes('evil.test'))
  return {
    now: `${pending} letters while pending, ${active} while active, the name in ${isOurs ? 'no' : 'a'} Subject; a reset of another ${asked.status}; ${waits}`,
    held: pending === 0 && active <= 20 && isOurs && asked.status === 202 && waits.isShort,
  }
}

const deadDomains = 500
const namesEach = 100

/** The maximum number of recipients, each at a domain whose mail servers' addresses never resolve. */
async function deadNames(scope: Scope): Promise<Outcome> {
  const { stage, neighbour } = await setScene(scope)
  const { dns, attacker } = stage
  for (let n = 0; n < deadDomains; n++) {
    const names = Array.from({ length: namesEach }, (_, k) => `mx${k}.d${n}.test`)
    dns.set(`d${n}.test`, { MX: names.map((name, k): [number, string] => [k, name]) })
    for (const name of names) dns.fail(name, 'silent')
  }
  const inbox = await attacker.createInbox()
  const waits = await neighbour.during(
    (async () => {
      for (let first = 0; first < deadDomains; first += 50)
        await send(
          attacker,
          inbox,
          Array.from({ length: 50 }, (_, n) => `someone@d${first + n}.test`),
        )
      // Long enough for the first look-ups to end and others to begin.
      await pause(20_000)
    })(),
  )
  const { localMs, healthyMs } = await measureDelivery(stage)
  const isQuick = [localMs, healthyMs].every((ms) => ms !== null && ms < 1_000)
  return {
    now: `another's mail: local ${inMs(localMs)}, healthy ${inMs(healthyMs)}; ${waits}`,
    held: isQuick && waits.isShort,
  }
}

/** Sends mails for a hundred spellings of postmaster@ each, after a person's report of abuse. */
async function floodedOperator(scope: Scope): Promise<Outcome> {
  const { stage, visits, neighbour } = await setScene(scope)
  const { smtp } = stage.posthorn
  await mailTo(smtp, ['abuse@inbox.test'])
  const waits = await neighbour.during(
    (async () => {
      for (let n = 0; n < 20; n++)
        await mailTo(
          smtp,
          Array.from({ length: 100 }, (_, tag) => `postmaster+${n}-${tag}@inbox.test`),
        )
    })(),
  )
  const rows = await visits.db.query<{ address: string }>(
    `select address from kept_mail where read_at is null`,
  )
  const isKept = rows.some(({ address }) => address === 'abuse@inbox.test')
  return {
    now: `${rows.length} rows; the report is ${isKept ? 'still unread' : 'gone'}; ${waits}`,
    held: isKept && rows.length <= 21 && waits.isShort,
  }
}

/** One mail to the maximum number of recipients. */
async function mailTo(smtp: { host: string; port: number }, recipients: string[]): Promise<void> {
  const rcpts = recipients.map((address) => `RCPT TO:<${address}>`)
  const mail = 'From: a@far.test\r\nSubject: Noise\r\n\r\nHello.\r\n.'
  const reply = await converse(smtp, ...rcpts, 'DATA', mail)
  if (!/^[245]/.test(reply ?? '')) throw new Error(`after the dot: ${reply}`)
}

/** Uses one link to a new password 110 times at once, repeatedly. */
async function oneLink(scope: Scope): Promise<Outcome> {
  const { visits, neighbour } = await setScene(scope)
  const attacker = new Visitor(visits)
  const email = 'attacker@healthy.test'
  await attacker.signUp(email)
  const statuses = new Map<number, number>()
  const waits = await neighbour.during(
    (async () => {
      for (let round = 0; round < 3; round++) {
        await attacker.post('/resets', { email })
        const token = await lastToken(visits, email)
        const headers = { 'x-forwarded-for': `203.0.113.${round}` }
        const uses = Array.from({ length: 110 }, () =>
          new Visitor(visits).call('/resets/complete', {
            method: 'POST',
            body: { token, password },
            headers,
          }),
        )
        for (const { status } of await Promise.all(uses))
          statuses.set(status, (statuses.get(status) ?? 0) + 1)
      }
    })(),
  )
  const counted = [...statuses].sort().map(([status, count]) => `${count} × ${status}`)
  return {
    now: `${counted.join(', ')}; ${waits}`,
    held: statuses.get(200) === 3 && !statuses.has(503) && waits.isShort,
  }
}

export const crowdingAttacks: Attack[] = [
  {
    name: 'an owner invites and withdraws 120 times, first from a pending organization',
    before: '120 letters in 4.3 s, with a text of theirs as Subject; then no letter of others for a minute',
    run: openMailer,
  },
  {
    name: `${deadDomains} recipients of one tenant at domains with ${namesEach} dead mail servers each`,
    before: "another's mail to a healthy domain after 12 to 70 s",
    run: deadNames,
  },
  {
    name: '2,000 spellings of postmaster@ in 20 mails, behind a report of abuse',
    before: 'the report was deleted unread',
    run: floodedOperator,
  },
  {
    name: 'one link to a new password used 110 times at once',
    before: "others' sign-in 503 for 16 s",
    run: oneLink,
  },
]
