// The TypeScript SDK and `ph` from their tarball, against the real service: restarts, lost answers, every command.
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { after, test } from 'node:test'
import { run } from '../support/command.ts'
import { startCuttingRelay } from '../support/cutting-relay.ts'
import { makePlace, startNode, type TestNode } from '../support/node.ts'
import { installSdk } from '../support/sdk-package.ts'
import { inherited } from '../support/service.ts'
import { until } from '../support/until.ts'
import { startReceiver, verifyCall } from '../support/webhook-receiver.ts'

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

/** The shells that complete, each with a program that prints the completions of `ph inb`. */
const completing: [shell: string, args: string[]][] = [
  ['bash', ['-c', 'eval "$(ph completion bash)"; COMP_WORDS=(ph inb) COMP_CWORD=1; _ph; echo "$COMPREPLY"']],
  [
    'zsh',
    [
      '-fc',
      'autoload -U compinit; compinit -D; eval "$(ph completion zsh)"; compadd() { echo $found }; words=(ph inb) CURRENT=2; _ph',
    ],
  ],
  ['fish', ['--no-config', '-c', 'ph completion fish | source; complete -C "ph inb"']],
]

test('ph: logs in, sends, waits, replies, follows, exports and validates from the tarball', async (t) => {
  const { folder } = await installed
  const node = await startNode(await makePlace(t), { env })
  const { secret, api } = await node.createCaller()
  const bin = join(folder, 'node_modules/.bin')
  const home = mkdtempSync(join(folder, 'home-'))
  const environment = Object.assign(inherited(), { HOME: home, PATH: `${bin}:${inherited()['PATH']}` })
  const ph = async (words: string[], input = '') => {
    const { status, stdout, stderr } = await run(
      join(bin, 'ph'),
      words,
      environment,
      home,
      Buffer.from(input),
    )
    assert.equal(status, 0, `ph ${words.join(' ')}\n${stdout}\n${stderr}`)
    return stdout
  }
  const viaNpx = await run('npx', ['--offline', 'ph', '--help'], environment, folder)
  assert.match(viaNpx.stdout, /^usage: ph COMMAND/)
  const refused = await run(join(bin, 'ph'), ['inbox'], environment, home)
  assert.deepEqual([refused.status, /not logged in/.test(refused.stderr)], [2, true])
  await ph(['login', baseOf(node)], `${secret}\n`)
  const profile = join(home, '.config/posthorn/profile.json')
  assert.equal(statSync(profile).mode & 0o777, 0o600)
  const [ada, ben] = await Promise.all(['ada', 'ben'].map((name) => api.createInbox(name)))
  await ph(['inbox', 'use', ada!.address])
  writeFileSync(join(home, 'terms.txt'), 'Terms.')
  const tail = spawn(join(bin, 'ph'), ['tail', '--after', '0', '--json'], { cwd: home, env: environment })
  t.after(() => void tail.kill('SIGKILL'))
  let followed = ''
  tail.stdout.on('data', (text) => (followed += text))
  const sending = ['send', '--to', ben!.address, '--subject', 'Lunch', '--attach', 'terms.txt', '--json']
  const sent = JSON.parse(await ph(sending, 'Noon?')) as { message: { id: string } }
  const received = JSON.parse(await ph(['wait', '--inbox', ben!.address, '--after', '0', '--json'])) as {
    id: string
  }
  await ph(['reply', received.id, '--text', 'Yes.'])
  const answer = await ph(['wait', '--after', sent.message.id, '--from', ben!.address])
  assert.match(answer, /^Subject: Re: Lunch$/m)
  await until('the reply to be followed', () => followed.includes('"subject":"Re: Lunch"'))
  assert.match(await ph(['read', received.id]), /terms\.txt \(6 bytes/)
  assert.match(await ph(['threads', '--inbox', ben!.id]), /^thr_\S+ {2}\S+ {2}2 {2}Lunch$/m)
  for (const format of ['jsonl', 'mbox', 'eml'])
    await ph(['export', `out-${format}`, '--format', format, '--inbox', ben!.id])
  assert.equal(readFileSync(join(home, 'out-jsonl'), 'utf8').trim().split('\n').length, 2)
  assert.match(
    readFileSync(join(home, 'out-mbox'), 'utf8'),
    /^From MAILER-DAEMON [^\n]+\n[\s\S]*\nSubject: Lunch\n/,
  )
  assert.deepEqual(readdirSync(join(home, 'out-eml')), [`${received.id}.eml`])
  const addresses = Array.from({ length: 10_000 }, (_, index) => `user${index}@inbox.test`)
  writeFileSync(join(home, 'list.csv'), ['Name,Email', ...addresses.map((one) => `x,${one}`)].join('\n'))
  const verdicts = (await ph(['validate', 'list.csv'])).trim().split('\n')
  assert.deepEqual([verdicts.length, verdicts[0]], [10_001, 'email,verdict,reason'])
  assert.match(verdicts[10_000]!, /^user9999@inbox\.test,\w+,\w+$/)
  writeFileSync(
    join(home, 'bounces.csv'),
    'EmailAddress,SuppressionReason\ngone@far.test,HardBounce\nnonsense,x\n',
  )
  const imported = JSON.parse(await ph(['suppressions', 'import', 'bounces.csv', '--json']))
  assert.partialDeepStrictEqual(imported, { format: 'Postmark', suppressed: 1 })
  for (const [shell, args] of completing) {
    if (spawnSync(shell, ['--version']).error) t.diagnostic(`${shell} is not installed`)
    else assert.match((await run(shell, args, environment, home)).stdout, /^inbox\b/, shell)
  }
})

test('ph: webhooks listen forwards events to a program on this machine, signed', async (t) => {
  const { folder } = await installed
  const receiver = await startReceiver(t)
  const node = await startNode(await makePlace(t), { env })
  const { secret, api } = await node.createCaller()
  const environment = Object.assign(inherited(), { PH_URL: baseOf(node), PH_KEY: secret })
  const signing = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
  const words = [
    'webhooks',
    'listen',
    receiver.url('/hook'),
    '--secret',
    signing,
    '--event',
    'suppression.created',
  ]
  const listening = spawn(join(folder, 'node_modules/.bin/ph'), words, { env: environment })
  t.after(() => void listening.kill('SIGKILL'))
  const call = await until(
    'a call',
    async () => {
      const body = { email: `gone-${Date.now()}@far.test` }
      await api.want('/v1/suppressions', { method: 'POST', status: 201, body })
      return receiver.callsOf('/hook')[0]
    },
    { everyMs: 200 },
  )
  verifyCall(signing, call)
  assert.equal(call.body.type, 'suppression.created')
  const ended = once(listening, 'close')
  listening.kill('SIGINT')
  assert.deepEqual((await ended)[0], 0)
})
