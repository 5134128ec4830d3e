// The part of the tour about mail that nobody takes: its bounce, what follows for the address, and how addresses are judged.
import { randomBytes, randomUUID } from 'node:crypto'
import {
  type Acceptance,
  type DeliveryEvent,
  type Inbox,
  outcome,
  type Step,
  type TourApi,
  type TourRequest,
} from './api.ts'
import type { TourReceiver } from './receiver.ts'

export async function* walkBounce(
  api: TourApi,
  receiver: TourReceiver,
  ada: Inbox,
  ben: Inbox,
): AsyncGenerator<Step, void> {
  // A new one each time: what bounced once is not written to again.
  const nobody = `demo-nobody-${randomBytes(4).toString('hex')}@${ben.address.split('@')[1]}`
  const { submission } = yield* writeToNobody(api, ada, nobody)
  yield* awaitBounce(api, submission.id)
  yield* receiver.awaitCall('message.bounced', submission.id)
  yield* showSuppression(api, nobody)
  yield* writeAgain(api, ada, nobody)
  yield* validate(api, [ben.address, nobody, 'ben@@nowhere'])
  yield* letGo(api, nobody)
}

function writeTo(inbox: Inbox, email: string): TourRequest {
  return {
    method: 'POST',
    path: `/v1/inboxes/${inbox.id}/messages`,
    idempotencyKey: `demo-${randomUUID()}`,
    body: { to: [{ email }], subject: 'Are you there?', text: 'Ada' },
  }
}

async function* writeToNobody(api: TourApi, ada: Inbox, nobody: string): AsyncGenerator<Step, Acceptance> {
  const request = writeTo(ada, nobody)
  const accepted = await api.ask<Acceptance>(request, 202)
  yield {
    title: 'Ada writes to an address that does not exist',
    meaning: 'It is accepted like any other: only the mail server of an address knows who is there.',
    request,
    ...outcome(accepted),
    excerpt: [['submission', `${accepted.body.submission.id}, ${accepted.body.submission.status}`]],
  }
  return accepted.body
}

async function* awaitBounce(api: TourApi, submissionId: string): AsyncGenerator<Step, void> {
  const request = { method: 'GET', path: `/v1/submissions/${submissionId}/events` } as const
  const find = ({ events }: { events: DeliveryEvent[] }) => events.find(({ type }) => type === 'bounced')
  const bounce = await api.askUntil(request, 'no bounce was recorded', find)
  const { response, classification } = bounce.found
  yield {
    title: 'It bounces',
    meaning: 'The mail server refused the recipient for good, so it is not tried again.',
    request,
    ...outcome(bounce),
    excerpt: [
      ['bounced', `${response}`],
      ['which is a', `${classification}`],
    ],
  }
}

interface Suppression {
  email: string
  reason: string
  createdAt: string
}

async function* showSuppression(api: TourApi, nobody: string): AsyncGenerator<Step, void> {
  const request = { method: 'GET', path: '/v1/suppressions?limit=10' } as const
  const find = ({ suppressions }: { suppressions: Suppression[] }) =>
    suppressions.find(({ email }) => email === nobody)
  const list = await api.askUntil(request, 'the address was not suppressed', find)
  yield {
    title: 'The address is suppressed',
    meaning: 'Writing on to addresses that bounce is what costs a sender its reputation.',
    request,
    ...outcome(list),
    excerpt: [[list.found.email, list.found.reason]],
  }
}

async function* writeAgain(api: TourApi, ada: Inbox, nobody: string): AsyncGenerator<Step, void> {
  const request = writeTo(ada, nobody)
  const refused = await api.ask<{ error: string; message: string }>(request, 422)
  yield {
    title: 'Ada writes there again',
    meaning: 'No other recipient is left, so the send is refused.',
    request,
    ...outcome(refused),
    excerpt: [[refused.body.error, refused.body.message]],
  }
}

interface Validation {
  email: string
  verdict: string
  reason: string
}

async function* validate(api: TourApi, emails: string[]): AsyncGenerator<Step, void> {
  const request = { method: 'POST', path: '/v1/validate/bulk', body: { emails } } as const
  const judged = await api.ask<{ results: Validation[] }>(request, 200)
  yield {
    title: 'Which addresses are good?',
    meaning: 'Form, DNS and lists are looked at, and what your own mail met with. Nobody is written to.',
    request,
    ...outcome(judged),
    excerpt: judged.body.results.map(({ email, verdict, reason }) => [email, `${verdict}: ${reason}`]),
  }
}

async function* letGo(api: TourApi, nobody: string): AsyncGenerator<Step, void> {
  const request = { method: 'DELETE', path: '/v1/suppressions', body: { email: nobody } } as const
  const gone = await api.ask<string>(request, 204)
  yield {
    title: 'The address may be written to again',
    meaning: 'Somebody knows better than the bounce: the suppression is taken back.',
    request,
    ...outcome(gone),
    excerpt: [],
  }
}
