// Mail in the name of a domain that wants forgeries refused: what forgers write so that it is taken all the same.
import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { after, test } from 'node:test'
import { DnsServer } from '../support/dns-server.ts'
import { makePlace, startNode } from '../support/node.ts'
import { Sender } from '../support/transaction.ts'
import { until } from '../support/until.ts'

const refused = '550 5.7.2'

const wish = { TXT: ['v=DMARC1; p=reject'] }
const dns = await DnsServer.start({ '_dmarc.bank.example': wish })
const place = await makePlace({ after })
place.after(() => dns.close())
const node = await startNode(place, {
  env: {
    POSTHORN_DELIVERY: 'capture',
    POSTHORN_DNS: dns.address,
    // As many connections as it likes.
    POSTHORN_SMTP_TRUSTED: '127.0.0.0/8',
  },
})
const { address } = await (await node.createCaller()).api.createInbox('ben')
const sender = new Sender(node.smtp)

async function send(header: string): Promise<string> {
  const raw = `${header}\r\n\r\nPay me.\r\n`
  return (await sender.send({ to: [address], from: 'a@evil.example', raw })).at(-1)!
}

test('check 55: who is shown as the author is whose domain is asked, however the field is written', async () => {
  const headers = [
    'From: ceo@bank.example',
    'From: a@evil.example\r\nFrom: ceo@bank.example',
    'From: <ceo @ bank . example>',
    'From: <ceo@bank(x).example>',
    'From: ceo@bank.example.',
    'From: <a b@d1.example>, <a b@d2.example>, <a b@d3.example>, CEO <ceo@bank.example>',
  ]
  for (const header of headers) assert.equal(await send(header), refused, header)
  assert.equal(await send('From: a@evil.example'), '250 2.0.0')
})

test('check 55: a header that is too large to be judged is refused, and leaves no file', async () => {
  const padding = `X: ${'x'.repeat(900)}\r\n`.repeat(300)
  assert.equal(await send(`${padding}From: ceo@bank.example`), '552 5.3.4')
  const { blobFolder } = node.foundation.settings
  const files = readdirSync(blobFolder, { recursive: true, withFileTypes: true })
  const blobs = files.filter((file) => file.isFile() && !/^(database-id|node-\d+)$/.test(file.name))
  assert.deepEqual(blobs, [])
})

// The last one, for it uses up the questions of its network.
test('check 52: who has used up the questions of his network is put off, and gets no forgery in', async () => {
  const names = Array.from({ length: 1_200 }, (_, index) => `s${index}._domainkey.evil.example`)
  for (const name of names) {
    dns.set(name, {})
    dns.fail(name, 'silent')
  }
  const signature = (index: number) =>
    `DKIM-Signature: v=1; a=rsa-sha256; d=evil.example; s=s${index}; h=from; bh=eA==; b=eA==\r\n`
  const signed = (first: number) => Array.from({ length: 8 }, (_, index) => signature(first + index)).join('')
  const flood = Array.from({ length: 150 }, (_, index) => send(`${signed(8 * index)}From: a@evil.example`))
  const asked = () =>
    new Set(dns.asked.map(({ name }) => name).filter((name) => name.includes('_domainkey'))).size
  // A domain that nobody has asked about yet for each try: a policy that is known needs no question.
  let tries = 0
  const forge = async () => {
    const domain = `safe${++tries}.example`
    dns.set(`_dmarc.${domain}`, wish)
    const headers = [`From: ceo@${domain}`, `From: ceo@${domain}\r\nFrom: a@evil.example`]
    const replies = await Promise.all(headers.map(send))
    for (const reply of replies) assert.ok(['451 4.7.1', refused].includes(reply), reply)
    return replies.every((reply) => reply === '451 4.7.1') ? headers : null
  }
  const headers = await until('a forger to be put off', forge)
  // A third of 1,024, but for the forger's own.
  assert.ok(asked() >= 335, `${asked()}`)
  await Promise.all(flood)
  for (const header of headers)
    assert.equal(await until('the policy', async () => answered(await send(header))), refused)
})

const answered = (reply: string) => (reply.startsWith('451') ? null : reply)
