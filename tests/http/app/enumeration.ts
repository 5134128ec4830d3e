// Requests that could reveal whether an address has an account, each for an address with an account and one without.
import { newUuid, type PersonId } from '../../../src/base/ids.ts'
import { insertPerson } from '../../../src/store/people/people.ts'
import { type PairedTimes, timePairs } from '../../support/paired-times.ts'
import type { Stage } from '../stage.ts'
import { password, Visitor } from './visitor.ts'

const lettersPerMinute = 500

interface Question {
  path: string
  status: number
  bodyOf(email: string): object
  /** The addresses without an account have signed up with this password and have not confirmed. */
  signedUpWith?: string
}

export const questions: Readonly<Record<string, Question>> = {
  'sign-in': {
    path: '/session',
    status: 401,
    bodyOf: (email) => ({ email, password: 'not the password' }),
  },
  'sign-in of who has just signed up': {
    path: '/session',
    status: 401,
    signedUpWith: 'another password',
    bodyOf: (email) => ({ email, password: 'another password' }),
  },
  'sign-up': {
    path: '/sign-up',
    status: 202,
    bodyOf: (email) => ({ email, password: 'another password', name: 'Somebody' }),
  },
  reset: { path: '/resets', status: 202, bodyOf: (email) => ({ email }) },
}

/**
 * Measures pairs of requests, and swaps the order in every second pair. Each request uses a new address and a new
 * network.
 */
export async function timeQuestion(
  stage: Stage,
  name: string,
  { path, status, bodyOf, signedUpWith }: Question,
  pairs: number,
): Promise<PairedTimes> {
  const addresses = (of: (name: string, n: number) => string) =>
    Array.from({ length: pairs }, (_, n) => of(name, n))
  await addPeople(stage, addresses(knownAddress), { password, confirmedAt: stage.clock.now() })
  if (signedUpWith)
    await addPeople(stage, addresses(unknownAddress), { password: signedUpWith, confirmedAt: null })
  // All requests share one connection, so that no measurement includes a connection setup.
  const visitor = new Visitor(stage)
  let networks = 0
  const ask = async (email: string) => {
    // The service sends a limited number of letters per minute.
    if (networks % lettersPerMinute === lettersPerMinute - 1) stage.clock.advance(60_000)
    visitor.ip = `2001:db8:${(++networks).toString(16)}:${name.length}::1`
    const answer = await visitor.post(path, bodyOf(email))
    if (answer.status !== status) throw new Error(`${path} of ${email}: ${JSON.stringify(answer.body)}`)
  }
  for (let n = 0; n < 3; n++) await ask(`warm-${slug(name)}-${n}@far.test`)
  return await timePairs(
    pairs,
    (n) => ask(knownAddress(name, n)),
    (n) => ask(unknownAddress(name, n)),
  )
}

const slug = (name: string) => name.replaceAll(' ', '-')
const knownAddress = (name: string, n: number) => `someone-${slug(name)}-${n}@far.test`
const unknownAddress = (name: string, n: number) => `nobody-${slug(name)}-${n}@far.test`

async function addPeople(
  { db, clock, passwords }: Stage,
  emails: string[],
  { password, confirmedAt }: { password: string; confirmedAt: Date | null },
): Promise<void> {
  const passwordHash = await passwords.hash('n', password)
  await db.transaction(async (tx) => {
    for (const email of emails) {
      const row = { id: newUuid<PersonId>(), email, name: 'Someone', passwordHash }
      await insertPerson(tx, { ...row, confirmedAt, createdAt: clock.now() })
    }
  })
}
