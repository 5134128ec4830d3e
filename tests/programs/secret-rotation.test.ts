// The secret key is changed while no node runs, interrupted at every step, and lost: everything that can be kept is kept.
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { copyFileSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type TestContext, test } from 'node:test'
import { startApp } from '../../src/app.ts'
import { Clock } from '../../src/base/clock.ts'
import { SecretBox } from '../../src/base/secret-box.ts'
import { rotateManagedKeys } from '../../src/flow/domains/managed-keys.ts'
import { readKeyFile } from '../../src/flow/secrets/key-file.ts'
import {
  openOrNull,
  type Rotation,
  rotateSecretKey,
  sealPurposes,
} from '../../src/flow/secrets/rotate-secret-key.ts'
import { findSealing, isFormer } from '../../src/flow/secrets/secret-key.ts'
import { readReturnPath, returnPathOf } from '../../src/mail/return-path.ts'
import { Db } from '../../src/postgres/db.ts'
import { eachSealed, secretKinds } from '../../src/store/sealed-secrets.ts'
import { readKeyState } from '../../src/store/secret-keys.ts'
import type { Api } from '../support/api.ts'
import { ownProgram, runCommand } from '../support/command.ts'
import { registerDomain } from '../support/customer-domain.ts'
import { makePlace, type Place, send, startNode, untilStates, urlOf } from '../support/node.ts'
import { createCaller, type Posthorn, startPosthorn } from '../support/service.ts'
import { startSink } from '../support/sink.ts'
import { until } from '../support/until.ts'
import { startReceiver, verifyCall } from '../support/webhook-receiver.ts'

const quiet = () => {}

interface Webhook {
  id: string
  secret: string
}

async function openEndpoint(api: Api, url: string): Promise<Webhook> {
  return await api.want('/v1/webhooks', { method: 'POST', status: 201, body: { url } })
}

/** Opens every sealed value with this key alone. Returns their number. */
async function openAll(db: Db, key: Buffer): Promise<number> {
  const box = new SecretBox(key)
  let count = 0
  for (const kind of secretKinds)
    for await (const secret of eachSealed(db, kind)) {
      assert.ok(openOrNull(box, sealPurposes[kind], secret), `${kind} ${secret.context}`)
      count++
    }
  return count
}

async function setStage(t: TestContext) {
  const [sink, receiver] = [await startSink(t), await startReceiver(t)]
  const place = await makePlace(t)
  const env = {
    POSTHORN_DELIVERY: 'relay',
    POSTHORN_RELAY_URL: sink.url,
    POSTHORN_ALLOW_PRIVATE_NETWORKS: 'true',
  }
  const node = await startNode(place, { env })
  const caller = await node.createCaller()
  const { api } = caller
  const webhook = await openEndpoint(api, receiver.url('/hook'))
  const path = `/v1/webhooks/${webhook.id}/rotate-secret`
  const { secret } = await api.want<Webhook>(path, { method: 'POST' })
  await registerDomain(api, 'customer.example')
  const { db, secretBox } = node.foundation
  await db.query(
    `insert into acme_account (directory, sealed_key, chain, sealed_certificate_key, created_at)
    values ('https://ca.test/', $1, 'a chain', $2, now())`,
    [
      secretBox.seal(sealPurposes['account key'], 'a key', 'https://ca.test/'),
      secretBox.seal(sealPurposes['certificate key'], 'another', 'a chain'),
    ],
  )
  return { place, env, node, caller, api, secret, receiver, sink, file: join(place.folder, 'secret-key') }
}

/** Asserts that mail is sent and that its webhook call arrives. */
async function prove(api: Api, calls: () => number): Promise<void> {
  const inbox = await api.createInbox()
  const before = calls()
  const { submission } = await send(api, inbox, ['someone@far.test'])
  await untilStates(api, submission.id, 'delivered')
  await until('its webhook', () => calls() > before)
}

test('a rotation interrupted after any step continues, and loses nothing', async (t) => {
  const { place, env, node, api, receiver, file } = await setStage(t)
  const token = { submissionId: '01890000-0000-7000-8000-000000000001' as never, position: 3 }
  const clock = new Clock()
  const address = returnPathOf(node.foundation.secretBox, token, 'inbox.test', clock.now())
  const [localPart] = address.split('@') as [string]
  const calls = () => receiver.callsOf('/hook').length
  await prove(api, calls)
  await node.stop()
  const db = new Db({ connection: place.connection })
  place.after(() => db.close())
  const stop = new Error('broken off')
  const rotate = (progress: (words: string) => void) => rotateSecretKey({ db, clock, file, progress })
  mkdirSync(join(place.folder, 'commands'))
  const askDoctor = async () => (await runCommand(['doctor'], settingsOf(place, file), place.folder)).stdout
  const [first] = (await readKeyFile(file))!
  const sealed = await openAll(db, first)
  assert.ok(sealed >= 7, `${sealed}`)
  const steps: string[] = []
  for (let last = 0; ; last++) {
    const [former] = (await readKeyFile(file))!
    let left = last
    const breakOff = (words: string) => {
      if (left-- > 0) return
      steps.push(words)
      throw stop
    }
    const done = await rotate(breakOff).catch((error) => {
      assert.equal(error, stop)
      return null
    })
    // At any step, the file has the key that opens everything, and a node would start.
    const state = await readKeyState(db)
    const keys = (await readKeyFile(file))!
    await openAll(db, findSealing(state, keys)!)
    if (steps.length === 1 && !done)
      assert.match(await askDoctor(), /! secret key .*second key, which seals nothing/)
    if (keys.some((one) => isFormer(state, one)))
      assert.match(await askDoctor(), /! secret key .*still holds a former key/)
    if (!done) {
      const { status, unopened } = await rotate(quiet)
      assert.match(status, /^(rotated|tidied)$/)
      assert.deepEqual(unopened, [])
    }
    const [key, ...others] = (await readKeyFile(file))!
    assert.deepEqual([key.equals(former), others], [false, []])
    await openAll(db, key)
    if (done) break
  }
  assert.ok(steps.length >= 6, steps.join('; '))
  // Two commands at once: one waits for the other, and no key is lost.
  await Promise.all([rotate(quiet), rotate(quiet)])
  const [key, ...others] = (await readKeyFile(file))!
  assert.deepEqual(others, [])
  await openAll(db, key)
  // A line that occurs twice is one key.
  writeFileSync(file, `${key.toString('hex')}\n`.repeat(2))
  assert.equal((await rotate(quiet)).status, 'rotated')
  await openAll(db, (await readKeyFile(file))![0])
  const { foundation } = await startNode(place, { env })
  const { secretBox } = foundation
  // Reports about mail sent under the first key are still accepted, and a list cursor still works. The key itself is
  // invalid.
  assert.deepEqual(readReturnPath(secretBox, localPart, 'inbox.test', clock.now()), token)
  assert.equal(readReturnPath(secretBox, localPart, 'other.test', clock.now()), null)
  await assert.rejects(openAll(db, first))
  const stale = { db, clock, secretBox: new SecretBox(first) }
  await assert.rejects(
    rotateManagedKeys(stale, 'inbox.test', 'none'),
    (error: { code?: string }) => error.code === 'unavailable',
  )
  assert.equal(statSync(file).mode & 0o777, 0o600)
  const deeds = await db.query(`select from audit_entry where action = 'secret.rotated'`)
  assert.ok(deeds.length > 5)
})

/** Settings of a command for the place. */
function settingsOf(place: Place, file: string): Record<string, string> {
  return {
    ...process.env,
    POSTHORN_DATABASE_URL: urlOf(place.connection),
    POSTHORN_DATA_DIR: join(place.folder, 'commands'),
    POSTHORN_SECRET_KEY_FILE: file,
    POSTHORN_BLOB_URL: `file:${join(place.folder, 'blobs')}`,
    POSTHORN_MANAGED_DOMAIN: 'inbox.test',
  } as Record<string, string>
}

test('a running node prevents a rotation, and a node with the former key does not start after it', async (t) => {
  const { place, env, node, caller, secret, receiver, file } = await setStage(t)
  const key = (await readKeyFile(file))!
  mkdirSync(join(place.folder, 'commands'))
  const rotate = () => runCommand(['secret', 'rotate'], settingsOf(place, file), place.folder)
  const refused = await rotate()
  const [row] = await node.foundation.db.query<{ id: number }>('select max(id) as id from node')
  assert.equal(refused.status, 1)
  assert.match(
    refused.stderr,
    new RegExp(`nodes with the secret key are running \\(${row!.id}\\): stop them first`),
  )
  assert.deepEqual(await readKeyFile(file), key)
  await node.app.stop()
  const done = await rotate()
  assert.deepEqual([done.status, done.stderr.includes('seals from now on')], [0, true], done.stderr)
  assert.match(done.stdout, /The new secret key is in .*\d+ secrets were sealed with it/)
  await assert.rejects(
    startApp(node.foundation, ['jobs']),
    /the secret key was changed after this node read it/,
  )
  await node.stop()
  const anew = await startNode(place, { env })
  // Calls are signed by the earlier secrets.
  await prove(anew.meet(caller), () => receiver.callsOf('/hook').length)
  verifyCall(secret, receiver.callsOf('/hook').at(-1)!)
  const { api } = await anew.createCaller()
  await openEndpoint(api, receiver.url('/anew'))
  await prove(api, () => receiver.callsOf('/anew').length)
})

test('the operator gets the lines for a read-only key file, and the command says which and when', async (t) => {
  const place = await makePlace(t)
  // The file name is so long that a draft with a longer name cannot be created.
  const file = join(place.folder, 'k'.repeat(240))
  copyFileSync(join(place.folder, 'secret-key'), file)
  const node = await startNode(place, { env: { POSTHORN_SECRET_KEY_FILE: file } })
  await node.app.stop()
  const { db, clock } = node.foundation
  const rotate = () => rotateSecretKey({ db, clock, file, progress: quiet })
  const [former] = (await readKeyFile(file))!
  const next = randomBytes(32)
  const write = (...keys: Buffer[]) =>
    writeFileSync(file, keys.map((key) => `${key.toString('hex')}\n`).join(''))
  await assert.rejects(rotate(), /ENAMETOOLONG.*nothing was changed: add a second line yourself/)
  // The order of the lines has no meaning.
  write(next, former)
  const over = /the rotation is complete, but .* cannot be written .*: remove all lines but line 1 yourself/
  await assert.rejects(rotate(), over)
  await openAll(db, next)
  // A second run does not begin another key.
  await assert.rejects(rotate(), over)
  write(next)
  await assert.rejects(rotate(), /nothing was changed/)
  await openAll(db, next)
})

/** Kills the command with SIGKILL once it prints this step. Resolves once it has ended. */
async function killAt(posthorn: Posthorn, step: RegExp): Promise<void> {
  const options = { cwd: posthorn.folder, env: posthorn.env }
  const child: ChildProcess = spawn(ownProgram, ['secret', 'rotate'], {
    ...options,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const told: string[] = []
  for await (const line of createInterface({ input: child.stderr! })) {
    told.push(line)
    if (step.test(line)) child.kill('SIGKILL')
  }
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  assert.ok(
    told.some((line) => step.test(line)),
    told.join('\n'),
  )
}

async function sendOne(api: Api, inboxId: string): Promise<void> {
  const body = { to: [{ email: 'someone@far.test' }], subject: 'Test', text: 'Hello.' }
  const call = { method: 'POST', status: 202, idempotencyKey: randomUUID(), body }
  await api.want(`/v1/inboxes/${inboxId}/messages`, call)
}

test('after kill -9 of the command at any step the service starts, and the command continues', async (t) => {
  const receiver = await startReceiver(t)
  const posthorn = await startPosthorn(t, {})
  const { api } = await createCaller(posthorn)
  const inbox = await api.createInbox()
  await openEndpoint(api, receiver.url('/hook'))
  const file = join(posthorn.folder, 'secret-key')
  const works = async () => {
    const before = receiver.calls.length
    await sendOne(api, inbox.id)
    await until('its webhook', () => receiver.calls.length > before)
  }
  await works()
  const [first] = (await readKeyFile(file))!
  for (const step of [/added the new key to/, /sealed with the new key/, /seals from now on/]) {
    assert.equal(await posthorn.stop(), 0)
    await killAt(posthorn, step)
    await posthorn.start()
    await works()
  }
  assert.equal(await posthorn.stop(), 0)
  const last = await posthorn.cli<Rotation>(['secret', 'rotate'])
  assert.match(last.status, /^(rotated|tidied)$/)
  const [key, ...others] = (await readKeyFile(file))!
  assert.deepEqual([key.equals(first), others], [false, []])
  await posthorn.start()
  await works()
})

interface Replaced {
  isNewKey: boolean
  domains: string[]
  webhooks: { id: string }[]
  keys: { selector: string; state: string }[]
}

test('a service that lost its secret key sends again, and its webhooks fail visibly until rotated', async (t) => {
  const [sink, receiver] = [await startSink(t), await startReceiver(t)]
  const posthorn = await startPosthorn(t, {
    env: {
      POSTHORN_DELIVERY: 'relay',
      POSTHORN_RELAY_URL: sink.url,
      POSTHORN_WEBHOOK_RETRY_SCHEDULE: Array(20).fill('1s').join(),
    },
  })
  const { api } = await createCaller(posthorn)
  const inbox = await api.createInbox()
  const webhook = await openEndpoint(api, receiver.url('/hook'))
  const domain = await registerDomain(api, 'customer.example')
  await sendOne(api, inbox.id)
  await until('it to arrive', () => sink.copies.length === 1)
  await until('its webhook', () => receiver.calls.length > 0)
  const command = (...words: string[]) =>
    runCommand(['secret', 'replace', ...words], posthorn.env, posthorn.folder)
  const intact = await command()
  assert.match(intact.stderr, /nothing to replace: the key in .* opens everything/)
  const running = await command('--yes')
  assert.deepEqual(
    [running.status, /nodes with the secret key are running/.test(running.stderr)],
    [1, true],
    running.stderr,
  )
  await posthorn.stop()
  rmSync(join(posthorn.folder, 'secret-key'))
  await assert.rejects(
    posthorn.start(),
    /secret key of this database is missing .*if the key is lost: posthorn secret replace/s,
  )
  const asked = await command()
  assert.equal(asked.status, 1)
  assert.match(
    asked.stderr,
    /gives up the secrets that cannot be opened \(DKIM key 3, webhook secret 1\): add --yes/,
  )
  const replaced = await posthorn.cli<Replaced>(['secret', 'replace', '--yes'])
  assert.equal(replaced.isNewKey, true)
  assert.deepEqual(
    replaced.webhooks.map(({ id }) => id),
    [webhook.id],
  )
  assert.ok(replaced.domains.includes('customer.example'))
  const [signing, ...others] = replaced.keys
  assert.deepEqual([signing!.state, others], ['active', []])
  assert.notEqual(signing!.selector, 'ph1')
  await posthorn.start()
  // It sends at once, signed by the new key.
  receiver.calls.length = 0
  await sendOne(api, inbox.id)
  const mail = await until('it to arrive', () => sink.copies[1])
  assert.ok(
    mail.raw
      .toString('latin1')
      .replaceAll(/\r\n\s+/g, ' ')
      .includes(`s=${signing!.selector}`),
  )
  // The customer has new keys, which wait to be published.
  const known = await api.want<typeof domain>(`/v1/domains/${domain.id}`)
  const selectors = ({ records }: typeof domain) =>
    records.filter(({ purpose }) => purpose === 'dkim').map(({ name }) => name)
  assert.equal(selectors(known).length, 2)
  assert.ok(selectors(known).every((name) => !selectors(domain).includes(name)))
  // The webhook fails with a reason, and works again with a new secret.
  const deliveries = async () =>
    (await api.want<{ deliveries: { error: string | null }[] }>(`/v1/webhooks/${webhook.id}/deliveries`))
      .deliveries
  await until('a failure that says what to do', async () =>
    (await deliveries()).some(({ error }) => error?.includes('cannot be opened: rotate it')),
  )
  assert.equal(receiver.calls.length, 0)
  const path = `/v1/webhooks/${webhook.id}/rotate-secret`
  const { secret } = await api.want<{ secret: string }>(path, { method: 'POST' })
  const call = await until('it to be called', () => receiver.calls[0])
  verifyCall(secret, call)
  assert.match((await command()).stderr, /nothing to replace/)
})
