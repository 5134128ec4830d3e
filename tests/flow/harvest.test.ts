// Names that do not exist, asked for by a stranger and by our own deliveries.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makePlace, send, startNode, untilStates } from '../support/node.ts'
import { Sender } from '../support/transaction.ts'

test('check 26: two inboxes among a thousand names are not found, and our own deliveries go their way', async (t) => {
  const node = await startNode(await makePlace(t), {
    env: { POSTHORN_DELIVERY: 'capture', POSTHORN_SMTP_TRUSTED: '' },
  })
  const { api } = await node.createCaller()
  const inboxes = [await api.createInbox('needle'), await api.createInbox('haystack')]
  // From the address that the stranger has too: none of these counts.
  const nobody = Array.from({ length: 60 }, (_, i) => `nobody${i}@inbox.test`)
  const { submission } = await send(api, inboxes[0]!, nobody)
  await untilStates(api, submission.id, ...nobody.map(() => 'bounced'))
  const stranger = new Sender(node.smtp)
  assert.deepEqual(await stranger.send({ to: ['nobody@inbox.test'], raw: '' }), ['550 5.1.1'])

  const names = Array.from({ length: 1_002 }, (_, i) => `name${i}@inbox.test`)
  for (const [index, { address }] of inboxes.entries()) names[300 + 300 * index] = address
  const groups = Array.from({ length: 201 }, (_, i) => names.slice(5 * i, 5 * i + 5))
  const heard = new Map<string, number>()
  const guess = async () => {
    for (let to = groups.pop(); to; to = groups.pop())
      for (const reply of await stranger.send({ to, raw: 'Subject: x\r\n\r\n' }))
        heard.set(reply, (heard.get(reply) ?? 0) + 1)
  }
  await Promise.all(Array.from({ length: 30 }, guess))
  assert.ok((heard.get('550 5.1.1') ?? 0) <= 50, JSON.stringify([...heard]))
  assert.equal(heard.get('250 2.1.5'), undefined)
  assert.match(node.log(), /too many unknown recipients/)

  assert.deepEqual(
    await new Sender(node.smtp, '127.0.1.2').send({ to: [inboxes[0]!.address], raw: 'x\r\n\r\n' }),
    [...['250 2.1.5', '250 2.0.0']],
  )
  const local = await send(api, inboxes[0]!, [inboxes[1]!.address])
  await untilStates(api, local.submission.id, 'delivered')
})
