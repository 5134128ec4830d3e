// What an organization's own mail says of an address: delivered, refused as unknown, suppressed; and that nobody is asked.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { OrganizationId } from '../../src/base/ids.ts'
import type { ValidationResult } from '../../src/flow/validation/validate.ts'
import { sameAddressKey } from '../../src/mail/address.ts'
import { insertSuppression } from '../../src/store/sending/suppressions.ts'
import type { Api } from '../support/api.ts'
import { DnsServer } from '../support/dns-server.ts'
import { makePlace, send, startNode, untilStates } from '../support/node.ts'
import { type Rule, startSink } from '../support/sink.ts'

const answers: Record<string, string> = {
  'gone@far.test': '550 5.1.1 no such user',
  'full@far.test': '552 5.2.2 mailbox full',
  'strict@far.test': '550 5.7.1 this looks like spam',
}
const rule: Rule = ({ stage, command }) =>
  (stage === 'rcpt' && answers[/<([^>]*)>/.exec(command)![1]!.toLowerCase()]) || null

const place = await makePlace({ after })
const dns = await DnsServer.start({
  'far.test': { MX: [[10, 'mx.far.test']] },
  'mx.far.test': { A: ['8.8.1.1'] },
})
place.after(() => dns.close())
const sink = await startSink(place, { rule })
const env = { POSTHORN_DELIVERY: 'relay', POSTHORN_RELAY_URL: sink.url, POSTHORN_DNS: dns.address }
const node = await startNode(place, { env })

async function judged(api: Api, emails: string[]): Promise<[mailbox: boolean | null, reason: string][]> {
  const call = { method: 'POST', body: { emails } }
  const { results } = await api.want<{ results: ValidationResult[] }>('/v1/validate/bulk', call)
  return results.map(({ checks, reason }) => [checks.mailbox, reason])
}

test('check 79: own deliveries and suppressions are evidence, of one organization for itself alone', async () => {
  const { api, organizationId } = await node.createCaller()
  const stranger = await node.createCaller()
  const people = ['fine@far.test', 'gone@far.test', 'full@far.test', 'strict@far.test']
  const nothing = people.map(() => [null, 'accepted'])
  assert.deepEqual(await judged(api, people), nothing)

  const inbox = await api.createInbox()
  const { submission } = await send(api, inbox, people)
  await untilStates(api, submission.id, 'delivered', 'bounced', 'bounced', 'bounced')
  const connections = sink.connections
  const after = [
    [true, 'accepted'],
    [false, 'mailbox_not_found'],
    [null, 'accepted'],
    [null, 'accepted'],
  ]
  assert.deepEqual(await judged(api, people), after)
  assert.deepEqual(
    await judged(
      api,
      people.map((email) => email.toUpperCase()),
    ),
    after,
  )
  assert.deepEqual(await judged(stranger.api, people), nothing)

  const suppressed = ['fine@far.test', 'new@far.test']
  await node.foundation.db.transaction(async (tx) => {
    for (const email of suppressed) {
      const row = { organizationId: organizationId as OrganizationId, addressKey: sameAddressKey(email) }
      await insertSuppression(
        tx,
        { ...row, email, reason: 'manual', note: null, since: null },
        node.foundation.clock.now(),
      )
    }
  })
  assert.deepEqual(await judged(api, ['Fine@far.test', 'new@far.test', 'other@far.test']), [
    [true, 'suppressed'],
    [null, 'suppressed'],
    [null, 'accepted'],
  ])
  assert.deepEqual(await judged(stranger.api, suppressed), [
    [null, 'accepted'],
    [null, 'accepted'],
  ])

  const reopened = 'gone@far.test'
  await node.foundation.db.query('delete from suppression where address_key = $1', [reopened])
  delete answers[reopened]
  const later = await send(api, inbox, [reopened])
  await untilStates(api, later.submission.id, 'delivered')
  assert.deepEqual(await judged(api, [reopened]), [[true, 'accepted']])
  assert.equal(sink.connections <= connections + 1, true, 'no address was asked about by SMTP')
})

test('an address of the managed domain is judged without DNS, as its mail is sent', async () => {
  const { api } = await node.createCaller()
  const ada = await api.createInbox()
  const ben = await api.createInbox()
  const nobody = `caspar@${ben.address.split('@')[1]}`
  assert.deepEqual(await judged(api, [ben.address, nobody]), [
    [null, 'accepted'],
    [null, 'accepted'],
  ])
  const { submission } = await send(api, ada, [ben.address, nobody])
  await untilStates(api, submission.id, 'delivered', 'bounced')
  assert.deepEqual(await judged(api, [ben.address, nobody]), [
    [true, 'accepted'],
    [false, 'mailbox_not_found'],
  ])
})
