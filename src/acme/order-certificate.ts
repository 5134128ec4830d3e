// Orders one certificate for many names by RFC 8555, without the names that cannot be validated.
import type { Authorization, Client, Order } from 'acme-client'
import { rest } from '../base/signal.ts'
import { makeCertificateRequest } from './certificate-request.ts'
import { type Account, createAcmeClient, reasonOf } from './client.ts'

export interface OrderDeps {
  account: Account
  /** Contact address for the authority. */
  email: string
  /** Makes every node answer this token with the key authorization. Resolves when that is in effect. */
  publish(token: string, keyAuthorization: string): Promise<void>
  stop: AbortSignal
}

interface Refused {
  name: string
  reason: string
}

/** The result of an order, in each case with the refused names and the reasons. */
export type Ordered =
  | { status: 'issued'; refused: Refused[]; chain: string; key: string }
  /** No certificate was wanted for the remaining names. */
  | { status: 'needless'; refused: Refused[] }
  | { status: 'failed'; refused: Refused[]; reason: string }

type Round = { issued: { chain: string; key: string } } | { refused: Refused[]; reason: string }

/** One refused name fails the whole order, so the next order omits it. Each order may lose more names. */
const maxRounds = 4
const validationMs = 120_000
const finishMs = 60_000
const pollMs = [250, 500, 1_000, 2_000, 3_000]

/**
 * Orders a certificate for these names, and first creates the account if the authority does not know it. `isWanted`
 * decides whether the remaining names are worth a certificate. Never rejects. Takes up to about ten minutes.
 */
export async function orderCertificate(
  deps: OrderDeps,
  names: readonly string[],
  isWanted: (names: readonly string[]) => boolean,
): Promise<Ordered> {
  const refused: Refused[] = []
  let reason = 'more names are refused with each order'
  try {
    const client = await enter(deps)
    for (let left = [...names], round = 0; round < maxRounds; round++) {
      const result = await orderOnce(client, left, deps)
      if ('issued' in result) return { status: 'issued', refused, ...result.issued }
      refused.push(...result.refused)
      reason = result.reason
      if (result.refused.length === 0) break
      left = left.filter((name) => !result.refused.some((one) => one.name === name))
      if (left.length === 0) break
      if (!isWanted(left)) return { status: 'needless', refused }
    }
  } catch (error) {
    // The client throws for each refusal by the authority, and for each fault on the way.
    reason = reasonOf(error)
  }
  return { status: 'failed', refused, reason }
}

async function enter({ account, email }: OrderDeps): Promise<Client> {
  const client = await createAcmeClient(account)
  // RFC 8555 7.3: for a key that already has an account, the authority returns that account.
  await client.createAccount({ termsOfServiceAgreed: true, contact: [`mailto:${email}`] })
  return client
}

async function orderOnce(client: Client, names: string[], deps: OrderDeps): Promise<Round> {
  const order = await begin(client, names)
  if (!('url' in order)) return order
  const authorizations = await client.getAuthorizations(order)
  const pending = authorizations.filter(({ status }) => status === 'pending')
  for (const authorization of pending) await answerChallenge(client, authorization, deps)
  const refused = [
    ...authorizations.filter(isLost).map(refusalOf),
    ...(await settle(client, order, pending, deps.stop)),
  ]
  if (refused.length > 0) return { refused, reason: describe(refused) }
  return await finish(client, order, names, deps.stop)
}

async function begin(client: Client, names: string[]): Promise<Order | Round> {
  try {
    return await client.createOrder({ identifiers: names.map((value) => ({ type: 'dns', value })) })
  } catch (error) {
    // RFC 8555 6.7: an authority that refuses names lists them, but the client passes on only the words.
    return withoutNamed(names, reasonOf(error))
  }
}

/** The names that occur in the words of a refusal are refused. */
function withoutNamed(names: string[], reason: string): Round {
  const words = new Set(
    reason
      .toLowerCase()
      .match(/[a-z0-9.-]+/g)
      ?.map((word) => word.replace(/\.$/, '')),
  )
  return { refused: names.filter((name) => words.has(name)).map((name) => ({ name, reason })), reason }
}

function describe([first, ...others]: Refused[]): string {
  return `${first!.name}: ${first!.reason}${others.length > 0 ? ` (and ${others.length} more)` : ''}`
}

/** Without a challenge over HTTP nothing is answered. The authorization then stays pending until we give up. */
async function answerChallenge(
  client: Client,
  { challenges }: Authorization,
  deps: OrderDeps,
): Promise<void> {
  const challenge = challenges.find(({ type }) => type === 'http-01')
  if (!challenge) return
  await deps.publish(challenge.token, await client.getChallengeKeyAuthorization(challenge))
  await client.completeChallenge(challenge)
}

/** Waits up to two minutes until all are valid or lost. Returns the lost ones, including those still pending. */
async function settle(
  client: Client,
  order: Order,
  authorizations: Authorization[],
  stop: AbortSignal,
): Promise<Refused[]> {
  const lost: Authorization[] = []
  let waiting = authorizations
  const deadlineMs = performance.now() + validationMs
  for (let poll = 0; waiting.length > 0 && performance.now() < deadlineMs; poll++) {
    await pause(poll, stop)
    const asked = await client.getAuthorizations({ ...order, authorizations: waiting.map(({ url }) => url) })
    lost.push(...asked.filter(isLost))
    waiting = asked.filter(({ status }) => status === 'pending')
  }
  return [...lost, ...waiting].map(refusalOf)
}

function isLost({ status }: Authorization): boolean {
  // RFC 8555 7.1.6: an authorization that does not become valid ends as invalid, expired, deactivated or revoked.
  return status !== 'pending' && status !== 'valid'
}

function refusalOf({ identifier, challenges, status }: Authorization): Refused {
  const fault = challenges
    .map(({ error }) => (error as { detail?: unknown } | undefined)?.detail)
    .find(Boolean)
  const reason = fault === undefined ? `its authorization is ${status}` : reasonOf(fault)
  return { name: identifier.value, reason }
}

async function finish(client: Client, order: Order, names: string[], stop: AbortSignal): Promise<Round> {
  const { key, request } = await makeCertificateRequest(names)
  try {
    await client.finalizeOrder(order, request)
  } catch (error) {
    return withoutNamed(names, reasonOf(error))
  }
  const deadlineMs = performance.now() + finishMs
  for (let poll = 0; ; poll++) {
    const current = await client.getOrder(order)
    if (current.status === 'valid') {
      return { issued: { chain: await client.getCertificate(current), key } }
    }
    if (current.status === 'invalid' || performance.now() > deadlineMs)
      return withoutNamed(
        names,
        `the order is ${current.status}: ${reasonOf(JSON.stringify(current.error ?? ''))}`,
      )
    await pause(poll, stop)
  }
}

async function pause(poll: number, stop: AbortSignal): Promise<void> {
  await rest(pollMs[Math.min(poll, pollMs.length - 1)]!, stop)
  stop.throwIfAborted()
}
