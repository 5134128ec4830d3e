// The tour's part on mail to an unknown address: its bounce, the suppression, and the validation of addresses.
import { randomBytes, randomUUID } from 'node:crypto'
import type { TourApi, TourRequest, TourStep } from './api.ts'
import type { TourReceiver } from './receiver.ts'
import type { Schemas } from './schemas.ts'

type Inbox = Schemas['Inbox']

export async function* walkBounce(
  api: TourApi,
  receiver: TourReceiver,
  ada: Inbox,
  ben: Inbox,
): AsyncGenerator<TourStep, void> {
  // A new address each time, because an address that bounced is suppressed.
  const unknown = `demo-nobody-${randomBytes(4).toString('hex')}@${ben.address.split('@')[1]}`
  const { submission } = await api.ask<Schemas['Acceptance']>(writeTo(ada, unknown), 202)
  yield api.step(
    'Ada writes to an address that does not exist',
    'The send is accepted like any other: only the mail server of an address knows whether it exists.',
    { submission: `${submission.id}, ${submission.status}` },
  )
  yield await awaitBounce(api, submission.id)
  yield await receiver.awaitCall('message.bounced', submission.id)
  yield* followSuppression(api, ada, unknown)
  const body = { emails: [ben.address, unknown, 'ben@@nowhere'] }
  const request = { method: 'POST', path: '/v1/validate/bulk', body } as const
  const { results } = await api.ask<Schemas['ValidationList']>(request, 200)
  yield api.step(
    'Check three addresses',
    'Validation checks syntax, DNS, lists, and the results of your own mail. It sends no mail.',
    results.map(({ email, verdict, reason }) => [email, `${verdict}: ${reason}`]),
  )
  await api.ask({ method: 'DELETE', path: '/v1/suppressions', body: { email: unknown } }, 204)
  yield api.step(
    'The suppression is removed',
    'Remove a suppression when you know that the address works again. Mail to it is sent from now on.',
    {},
  )
}

function writeTo(inbox: Inbox, email: string): TourRequest {
  return {
    method: 'POST',
    path: `/v1/inboxes/${inbox.id}/messages`,
    idempotencyKey: `demo-${randomUUID()}`,
    body: { to: [{ email }], subject: 'Are you there?', text: 'Ada' },
  }
}

async function awaitBounce(api: TourApi, submissionId: string): Promise<TourStep> {
  const { response, classification } = await api.getUntil(
    `/v1/submissions/${submissionId}/events`,
    'no bounce was recorded',
    ({ events }: Schemas['DeliveryEventList']) => events.find(({ type }) => type === 'bounced'),
  )
  return api.step(
    'The message bounces',
    'The mail server refused the recipient permanently, so there is no retry.',
    {
      bounced: `${response}`,
      classification: `${classification}`,
    },
  )
}

async function* followSuppression(api: TourApi, ada: Inbox, unknown: string): AsyncGenerator<TourStep, void> {
  const { email, reason } = await api.getUntil(
    '/v1/suppressions?limit=10',
    'the address was not suppressed',
    ({ suppressions }: Schemas['SuppressionList']) => suppressions.find(({ email }) => email === unknown),
  )
  yield api.step(
    'The address is suppressed',
    'Posthorn sends it no more mail: mail to addresses that bounce costs a sender its reputation.',
    { [email]: reason },
  )
  const { error, message } = await api.ask<Schemas['ErrorBody']>(writeTo(ada, unknown), 422)
  yield api.step('Ada writes to it again', 'The only recipient is suppressed, so the send is refused.', {
    [error]: message,
  })
}
