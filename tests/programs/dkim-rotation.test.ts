// The command rotates the managed domain's DKIM keys: new keys are published, found in DNS, and replace the former ones.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import type { ManagedKey } from '../../src/flow/domains/managed-keys.ts'
import type { Api } from '../support/api.ts'
import { runCommand } from '../support/command.ts'
import { DnsServer } from '../support/dns-server.ts'
import { createCaller, type Posthorn, startPosthorn } from '../support/service.ts'
import { startSink } from '../support/sink.ts'
import { until } from '../support/until.ts'

interface Rotation {
  domain: string
  made: number
  keys: ManagedKey[]
}

interface Doctor {
  checks: { name: string; status: string; detail: string; mend: string | null }[]
  managedDomain: { dkim: ManagedKey[] }
}

async function setStage(t: TestContext, env: Record<string, string>) {
  const sink = await startSink(t)
  const dns = await DnsServer.start()
  t.after(() => dns.close())
  const relay = { POSTHORN_DELIVERY: 'relay', POSTHORN_RELAY_URL: sink.url, POSTHORN_DNS: dns.address }
  const posthorn = await startPosthorn(t, {
    env: { ...relay, POSTHORN_MANAGED_DOMAIN: 'inbox.example', ...env },
  })
  const { api } = await createCaller(posthorn)
  return { posthorn, sink, dns, api, inbox: await api.createInbox() }
}

type Stage = Awaited<ReturnType<typeof setStage>>

/** The selectors that sign a mail sent now, in order. */
async function selectorsOf({ api, inbox, sink }: Pick<Stage, 'api' | 'inbox' | 'sink'>): Promise<string[]> {
  const before = sink.copies.length
  await sendOne(api, inbox.id)
  const mail = await until('it to arrive', () => sink.copies[before])
  const header = mail.raw
    .toString('latin1')
    .split('\r\n\r\n', 1)[0]!
    .replaceAll(/\r\n[ \t]+/g, ' ')
  const fields = header.split('\r\n').filter((line) => /^DKIM-Signature:/i.test(line))
  return fields.map((field) => /\bs=([^;\s]+)/.exec(field)![1]!).sort()
}

async function sendOne(api: Api, inboxId: string): Promise<void> {
  const body = { to: [{ email: 'someone@far.test' }], subject: 'Test', text: 'Hello.' }
  const call = { method: 'POST', status: 202, idempotencyKey: randomUUID(), body }
  await api.want(`/v1/inboxes/${inboxId}/messages`, call)
}

const namesOf = (keys: ManagedKey[], state: ManagedKey['state']) =>
  keys.filter((key) => key.state === state).map(({ selector }) => selector)

/** The text of a zone line's strings, joined as a resolver joins them. */
function textIn(zoneLine: string): string {
  const strings = [...zoneLine.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, string]) => string!)
  assert.ok(strings.every((string) => string.length <= 255))
  return strings.join('')
}

const rotate = (posthorn: Posthorn) => posthorn.cli<Rotation>(['dkim', 'rotate'])

test('in production new keys wait until DNS shows them, are printed again meanwhile, and then replace the former', async (t) => {
  const stage = await setStage(t, { POSTHORN_MAIL_HOST: 'mx.example' })
  const { posthorn, dns } = stage
  assert.deepEqual(await selectorsOf(stage), ['ph1'])
  const first = await rotate(posthorn)
  assert.deepEqual([first.domain, first.made, namesOf(first.keys, 'active')], ['inbox.example', 2, ['ph1']])
  const pending = first.keys.filter(({ state }) => state === 'pending')
  assert.deepEqual(
    pending.map(({ algorithm }) => algorithm),
    ['rsa-sha256', 'ed25519-sha256'],
  )
  const again = await rotate(posthorn)
  assert.deepEqual([again.made, again.keys], [0, first.keys])
  // People get the exact lines of a zone file, and the next step.
  const told = await runCommand(['dkim', 'rotate'], posthorn.env, posthorn.folder)
  const lines = told.stdout.split('\n').filter((line) => line.includes(' IN TXT '))
  assert.deepEqual(
    lines,
    pending.map(({ zoneLine }) => zoneLine),
  )
  assert.match(told.stdout, /ph1 continues to sign.*checks DNS every few seconds/)
  assert.deepEqual(await selectorsOf(stage), ['ph1'])
  const looked = await runCommand(['doctor', '--json'], posthorn.env, posthorn.folder)
  // DNS has no other record of this domain.
  assert.equal(looked.status, 1)
  const { checks } = JSON.parse(looked.stdout) as Doctor
  const check = checks.find(({ name }) => name === `DNS: DKIM ${pending[0]!.selector}`)!
  assert.deepEqual([check.status, check.mend], ['warning', `publish: ${pending[0]!.zoneLine}`])
  assert.match(checks.find(({ name }) => name === 'signing key')!.detail, /ph1 .*waiting to be published/)
  // DNS has a wrong key for one selector. That selector does not sign, and the other does.
  dns.set(pending[0]!.name, { TXT: ['v=DKIM1; k=rsa; p=AAAA'] })
  dns.set(pending[1]!.name, { TXT: [textIn(pending[1]!.zoneLine)] })
  const show = () => posthorn.cli<Rotation>(['dkim', 'show'])
  await until('Ed25519 to sign', async () => namesOf((await show()).keys, 'active').length === 2)
  await until('the service to sign with it', async () => {
    const signing = await selectorsOf(stage)
    return signing.join() === ['ph1', pending[1]!.selector].sort().join()
  })
  dns.set(pending[0]!.name, { TXT: [textIn(pending[0]!.zoneLine)] })
  await until('RSA to sign', async () => namesOf((await show()).keys, 'pending').length === 0)
  await until('the service to sign with both', async () => {
    const signing = await selectorsOf(stage)
    return (
      signing.join() ===
      pending
        .map(({ selector }) => selector)
        .sort()
        .join()
    )
  })
  const { keys } = await show()
  assert.deepEqual(namesOf(keys, 'retired'), ['ph1'])
  const days = (Date.parse(keys[0]!.publishedUntil!) - Date.now()) / 86_400_000
  assert.ok(days > 6.9 && days < 7.1, `${days} days`)
})

test('in development new keys sign at once, and the former key is retired', async (t) => {
  const stage = await setStage(t, {})
  const { posthorn } = stage
  assert.deepEqual(await selectorsOf(stage), ['ph1'])
  const { keys } = await rotate(posthorn)
  assert.deepEqual([namesOf(keys, 'retired'), namesOf(keys, 'pending')], [['ph1'], []])
  const signing = namesOf(keys, 'active').sort()
  assert.equal(signing.length, 2)
  await until(
    'the service to sign with them',
    async () => (await selectorsOf(stage)).join() === signing.join(),
  )
  // Repeated: each rotation makes two new keys, and the list of former keys stays bounded.
  for (let times = 0; times < 5; times++) await rotate(posthorn)
  const last = await rotate(posthorn)
  assert.deepEqual([namesOf(last.keys, 'active').length, namesOf(last.keys, 'retired').length], [2, 8])
})
