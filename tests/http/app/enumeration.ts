// Questions that could tell whether an address has an account, each for one that has and for one that has not.
import { newUuid, type PersonId } from '../../../src/base/ids.ts'
import { Passwords } from '../../../src/flow/people/passwords.ts'
import { insertPerson } from '../../../src/store/people.ts'
import { type PairedTimes, timePairs } from '../../support/paired-times.ts'
import type { Stage } from '../stage.ts'
import { password, Visitor } from './visitor.ts'

const lettersPerMinute = 500

interface Question {
  path: string
  status: number
  bodyOf(email: string): object
}

export const questions: Readonly<Record<string, Question>> = {
  'sign-in': {
    ...{ path: '/session', status: 401 },
    bodyOf: (email) => ({ email, password: 'not the password' }),
  },
  'sign-up': {
    ...{ path: '/sign-up', status: 202 },
    bodyOf: (email) => ({ email, password: 'another password', name: 'Somebody' }),
  },
  reset: { path: '/resets', status: 202, bodyOf: (email) => ({ email }) },
}

/** Asks in pairs, every other one turned round; each time of another address, and from another network. */
export async function timeQuestion(
  stage: Stage,
  name: string,
  { path, status, bodyOf }: Question,
  pairs: number,
): Promise<PairedTimes> {
  await addPeople(stage, name, pairs)
  // One connection for all, so that none of them pays for it.
  const visitor = new Visitor(stage)
  let networks = 0
  const ask = async (email: string) => {
    // The service writes so many letters a minute.
    if (networks % lettersPerMinute === lettersPerMinute - 1) stage.clock.advance(60_000)
    visitor.ip = `2001:db8:${(++networks).toString(16)}:${name.length}::1`
    const answer = await visitor.post(path, bodyOf(email))
    if (answer.status !== status) throw new Error(`${path} of ${email}: ${JSON.stringify(answer.body)}`)
  }
  for (let n = 0; n < 3; n++) await ask(`warm-${name}-${n}@far.test`)
  return await timePairs(
    pairs,
    (n) => ask(knownAddress(name, n)),
    (n) => ask(`nobody-${name}-${n}@far.test`),
  )
}

const knownAddress = (name: string, n: number) => `someone-${name}-${n}@far.test`

async function addPeople({ db, clock }: Stage, name: string, count: number): Promise<void> {
  const passwordHash = await new Passwords().hash('n', password)
  const at = clock.now()
  await db.transaction(async (tx) => {
    for (let n = 0; n < count; n++) {
      const row = { id: newUuid<PersonId>(), email: knownAddress(name, n), name: 'Someone', passwordHash }
      await insertPerson(tx, { ...row, confirmedAt: at, createdAt: at })
    }
  })
}
