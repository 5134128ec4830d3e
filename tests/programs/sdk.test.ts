// The TypeScript SDK from its tarball, against the real service: the page's program, restarts, lost answers.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { join, resolve } from 'node:path'
import { after, type TestContext, test } from 'node:test'
import { run } from '../support/command.ts'
import { makePlace, startNode, type TestNode } from '../support/node.ts'
import { installSdk } from '../support/sdk-package.ts'
import { inherited } from '../support/service.ts'
import { until } from '../support/until.ts'
import { startReceiver } from '../support/webhook-receiver.ts'

type Sdk = typeof import('../../sdk/typescript/src/posthorn.ts')

const root = resolve(import.meta.dirname, '../..')
const installed = installSdk({ after })

function baseOf({ app }: TestNode): string {
  return `http://${app.listening.http!.host}:${app.listening.http!.port}`
}

async function importSdk(): Promise<Sdk> {
  const { folder } = await installed
  return await import(join(folder, 'node_modules/posthorn-client/dist/posthorn.js'))
}

const env = { POSTHORN_DELIVERY: 'capture', POSTHORN_ALLOW_PRIVATE_NETWORKS: 'true' }

test('sdk: the program of README runs from the tarball in an empty folder, and its types are strict', async (t) => {
  const { folder } = await installed
  const [, text] = /^```ts\n([\s\S]*?)^```$/m.exec(readFileSync(join(root, 'README.md'), 'utf8'))!
  assert.ok(text!.trim().split('\n').length <= 10)
  const node = await startNode(await makePlace(t), { env })
  const { secret } = await node.createCaller()
  writeFileSync(join(folder, 'lunch.ts'), text!.replace('http://127.0.0.1:8025', baseOf(node)))
  const options = { target: 'es2022', module: 'nodenext', strict: true, noEmit: true, types: ['node'] }
  const typeRoots = [join(root, 'node_modules/@types')]
  const compilerOptions = Object.assign(options, { exactOptionalPropertyTypes: true, typeRoots })
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['lunch.ts'] }))
  const compiled = await run(join(root, 'node_modules/.bin/tsc'), ['-p', '.'], inherited(), folder)
  assert.equal(compiled.status, 0, compiled.stdout)
  const startMs = performance.now()
  const environment = Object.assign(inherited(), { POSTHORN_KEY: secret })
  const { status, stdout, stderr } = await run(process.execPath, ['lunch.ts'], environment, folder)
  assert.deepEqual([status, stdout], [0, 'Noon is fine.\n'], stderr)
  t.diagnostic(`the program took ${Math.round(performance.now() - startMs)} ms`)
})

test('sdk: streams go on after a restart of the service, without a gap or a double', async (t) => {
  const { Posthorn } = await importSdk()
  const place = await makePlace(t)
  const first = await startNode(place, { env })
  const { secret } = await first.createCaller()
  const baseUrl = baseOf(first)
  const client = new Posthorn({ baseUrl, apiKey: secret })
  const created = await client.inboxes.create({ localPart: 'watched' })
  const inbox = client.inbox(created)
  const events = client.events.watch()
  const messages = inbox.messages.watch()
  const nextEvent = events.next()
  const nextMessage = messages.next()
  const send = (subject: string) =>
    inbox.messages.send({ to: [{ email: created.address }], subject, text: 'Hello' })
  const suppress = (email: string) => client.suppressions.create({ email })
  const emailOf = async (next: typeof nextEvent) => {
    for (let one = await next; ; one = await events.next())
      if (one.value?.type === 'suppression.created') return one.value.data.suppression.email
  }
  // The stream begins when it is open, so the first event is repeated until one comes.
  const repeated = setInterval(() => void suppress(`first-${Date.now()}@far.test`), 200)
  assert.match(await emailOf(nextEvent), /^first-/)
  clearInterval(repeated)
  await send('one')
  assert.equal((await nextMessage).value?.subject, 'one')
  await suppress('last@far.test')
  await first.stop()
  // This call waits for the new service.
  const sending = send('two')
  await startNode(place, { env: Object.assign({ POSTHORN_HTTP: new URL(baseUrl).host }, env) })
  await sending
  await suppress('again@far.test')
  const seen: string[] = []
  while (seen.at(-1) !== 'again@far.test') seen.push(await emailOf(events.next()))
  assert.deepEqual(
    seen.filter((email) => !email.startsWith('first-')),
    ['last@far.test', 'again@far.test'],
  )
  assert.equal(new Set(seen).size, seen.length)
  assert.equal((await messages.next()).value?.subject, 'two')
  for (const stream of [events, messages]) await stream.return()
})

/** Passes bytes on. Cuts its first connection when the service has answered, before the client gets a byte. */
async function startCuttingRelay(t: TestContext, to: URL): Promise<{ url: string; cuts(): number }> {
  let cuts = 0
  const server = createServer((client) => {
    const service = connect(Number(to.port), to.hostname)
    for (const socket of [client, service]) socket.on('error', () => socket.destroy())
    client.pipe(service)
    service.on('data', (bytes) => {
      if (cuts > 0) return void client.write(bytes)
      cuts++
      client.resetAndDestroy()
      service.destroy()
    })
    client.on('close', () => service.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, cuts: () => cuts }
}

test('sdk: a send whose answer is lost is sent once; lists, exports, attachments and webhooks are whole', async (t) => {
  const { Posthorn, verifyWebhook } = await importSdk()
  const receiver = await startReceiver(t)
  const node = await startNode(await makePlace(t), { env })
  const { secret } = await node.createCaller()
  const options = { baseUrl: baseOf(node), apiKey: secret }
  const client = new Posthorn(options)
  const endpoint = await client.webhooks.create({
    url: receiver.url('/sdk'),
    eventTypes: ['message.bounced'],
  })
  const ada = await client.inboxes.create({ localPart: 'ada' })
  const relay = await startCuttingRelay(t, new URL(options.baseUrl))
  const far = new Posthorn({ baseUrl: relay.url, apiKey: secret })
  const body = { to: [{ email: ada.address }], subject: 'Once', text: 'Hello' }
  const content = new Blob(['Terms.']).stream()
  const attachments = [{ filename: 'terms.txt', contentType: 'text/plain', content }]
  const sent = await far.inbox(ada).messages.send(Object.assign(body, { attachments }))
  assert.deepEqual([relay.cuts(), sent.replayed], [1, true])
  const received = await client.inbox(ada).messages.wait()
  const [attachment] = received.attachments!
  const download = await client.messages.attachment(received.id, attachment!.id, { wait: 30 })
  assert.deepEqual([download.filename, download.sizeBytes], ['terms.txt', 6])
  assert.equal(Buffer.from(await download.bytes()).toString(), 'Terms.')
  const source = await client.messages.source(received.id)
  assert.match(Buffer.from(await source.bytes()).toString(), /Subject: Once\r\n/)
  const exported: string[] = []
  for await (const { id } of client.inboxes.export(ada.id, { limit: 1 })) exported.push(id)
  assert.deepEqual(exported, [sent.message.id, received.id])
  await client.webhooks.test(endpoint.id)
  const call = await until('the call', () => receiver.callsOf('/sdk')[0])
  const event = await verifyWebhook(endpoint.secret, call.raw, call.headers)
  assert.equal(event.type, 'webhook.test')
})
