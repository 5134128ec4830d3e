// What is attached over the API arrives as it was given, inline images under the names that the HTML has for them.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, type TestContext, test } from 'node:test'
import type { Message } from '../support/api.ts'
import { fakeClamd, streamed } from '../support/clamd.ts'
import { openReaders } from '../support/mail-readers.ts'
import { makePlace, startNode } from '../support/node.ts'
import { startSink } from '../support/sink.ts'
import { until } from '../support/until.ts'

const readers = openReaders()
after(() => {
  for (const reader of readers) reader.close()
})

async function setStage(t: TestContext) {
  const clamd = await fakeClamd(t, (socket, received) => {
    if (streamed(received)) socket.end('stream: OK\0')
  })
  const sink = await startSink(t)
  const env = {
    POSTHORN_DELIVERY: 'relay',
    POSTHORN_RELAY_URL: sink.url,
    POSTHORN_CLAMD: `${clamd.host}:${clamd.port}`,
  }
  const node = await startNode(await makePlace(t), { env })
  const { api } = await node.createCaller()
  return { sink, api, inbox: await api.createInbox('files') }
}

interface Shown extends Omit<Message, 'attachments'> {
  attachments: { id: string; scanState: string; contentId: string | null; disposition: string }[]
}

test('inline images, empty files and many of them reach other parsers, our own inboxes and downloads', async (t) => {
  const { sink, api, inbox } = await setStage(t)
  const png = Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), randomBytes(500)])
  const files: { filename: string; contentType: string; content: Buffer; contentId?: string }[] = [
    { filename: 'logo.png', contentType: 'image/png', content: png, contentId: 'logo' },
    {
      filename: 'foot.gif',
      contentType: 'image/gif',
      content: randomBytes(80),
      contentId: 'foot.1@posthorn',
    },
    { filename: 'empty.txt', contentType: 'text/plain', content: Buffer.alloc(0) },
    { filename: 'bytes.bin', contentType: 'application/octet-stream', content: randomBytes(3000) },
    ...Array.from({ length: 96 }, (_, i) => ({
      filename: `${i}.txt`,
      contentType: 'text/plain',
      content: Buffer.from(`file ${i}`),
    })),
  ]
  const body = {
    to: [{ email: 'someone@far.test' }, { email: inbox.address }],
    subject: 'Images',
    text: 'See.',
    html: '<img src="cid:logo"><img src="cid:foot.1@posthorn">',
    attachments: files.map(({ content, ...file }) => ({ ...file, content: content.toString('base64') })),
  }
  const { message } = await api.want<{ message: Shown }>(`/v1/inboxes/${inbox.id}/messages`, {
    method: 'POST',
    status: 202,
    idempotencyKey: 'with-images',
    body,
  })
  const wanted = files.map(({ contentId = null, content }) => [contentId, content.toString('hex')])
  const byPlace = (all: (string | null)[][]) => all.map((one) => one.join(' ')).sort()
  const [copy] = await until('it to go out', () => {
    const copies = sink.copiesOf(message.internetMessageId)
    return copies.length > 0 ? copies : null
  })
  for (const reader of readers) {
    const { attachments, html } = await reader.read(copy!.raw)
    const seen = attachments.map(({ contentId, content }) => [contentId, content.toString('hex')])
    assert.deepEqual(byPlace(seen), byPlace(wanted), reader.name)
    assert.match(html, /<img src="cid:logo">/, reader.name)
  }
  const scanned = async (of: { id: string }) => {
    return await until('it to be scanned', async () => {
      const shown = await api.want<Shown>(`/v1/messages/${of.id}`)
      return shown.attachments.every(({ scanState }) => scanState === 'clean') ? shown : null
    })
  }
  const received = await until('it to arrive', async () => {
    return (await api.exported(inbox.id)).find(({ direction }) => direction === 'inbound')
  })
  for (const shown of [await scanned(message), await scanned(received)]) {
    const downloads = []
    for (const { id, contentId } of shown.attachments)
      downloads.push([
        contentId,
        (await api.bytes(`/v1/messages/${shown.id}/attachments/${id}`)).toString('hex'),
      ])
    assert.deepEqual(byPlace(downloads), byPlace(wanted), shown.direction)
    const inline = shown.attachments.filter(({ disposition }) => disposition === 'inline')
    assert.deepEqual(inline.map(({ contentId }) => contentId).sort(), ['foot.1@posthorn', 'logo'])
  }
})
