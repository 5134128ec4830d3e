// Credentials for S3 from each source: variables, a file, and small servers that speak as a container's and an instance's.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, type TestContext, test } from 'node:test'
import { type CredentialSettings, CredentialSource } from './credentials.ts'

const folder = mkdtempSync(join(tmpdir(), 'posthorn-credentials-'))
after(() => rmSync(folder, { recursive: true }))
const emptyFile = join(folder, 'none')

const unset: CredentialSettings = {
  accessKeyId: null,
  secretAccessKey: null,
  sessionToken: null,
  file: null,
  profile: null,
  containerUrl: null,
  containerTokenFile: null,
  instanceUrl: null,
}
// Tests must not depend on the file of the user who runs them.
process.env['HOME'] = folder

type Answer = (asked: IncomingMessage) => { status?: number; text: string }

/** Starts a server and returns its address. */
async function serve(t: TestContext, answer: Answer): Promise<string> {
  const server = createServer((asked, response) => {
    const { status = 200, text } = answer(asked)
    response.writeHead(status).end(text)
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function roleKeys(number: number, expiresAtMs: number): string {
  const keys = { AccessKeyId: `id-${number}`, SecretAccessKey: 'secret', Token: 'token' }
  return JSON.stringify({ ...keys, Expiration: new Date(expiresAtMs).toISOString() })
}

const hourMs = 3_600_000

test('variables come before every other source', async () => {
  const given = { ...unset, accessKeyId: 'id', secretAccessKey: 'secret', file: emptyFile }
  assert.partialDeepStrictEqual(await new CredentialSource(given).current(), {
    accessKeyId: 'id',
    secretAccessKey: 'secret',
  })
})

test('a file gives the keys of its profile, and a named file without them is an error', async () => {
  const file = join(folder, 'file')
  writeFileSync(
    file,
    '[default]\naws_access_key_id = one\r\naws_secret_access_key=first\n\n# a comment\n[ shop ]\n' +
      'aws_access_key_id=two\naws_secret_access_key = a/b+c=\naws_session_token = token\n',
  )
  const read = (profile: string | null) => new CredentialSource({ ...unset, file, profile }).current()
  assert.partialDeepStrictEqual(await read(null), { accessKeyId: 'one', secretAccessKey: 'first' })
  assert.partialDeepStrictEqual(await read('shop'), {
    accessKeyId: 'two',
    secretAccessKey: 'a/b+c=',
    sessionToken: 'token',
  })
  await assert.rejects(read('other'), /file has no keys for the profile other/)
  await assert.rejects(
    new CredentialSource({ ...unset, file: emptyFile }).current(),
    /none cannot be read \(ENOENT\)/,
  )
})

test('a container gives its keys to the bearer of its token, and again before they expire', async (t) => {
  const containerTokenFile = join(folder, 'token')
  writeFileSync(containerTokenFile, 'bearer\n')
  let asked = 0
  const containerUrl = await serve(t, ({ headers: { authorization } }) => {
    if (authorization !== 'bearer') return { status: 401, text: 'no' }
    asked++
    return { text: roleKeys(asked, Date.now() + (asked === 1 ? 60_000 : hourMs)) }
  })
  const source = new CredentialSource({ ...unset, containerUrl, containerTokenFile })
  // The first keys are so near to their end that they are asked for again, once for all calls.
  for (const found of await Promise.all(Array.from({ length: 5 }, () => source.current())))
    assert.partialDeepStrictEqual(found, { accessKeyId: 'id-2', sessionToken: 'token' })
  assert.equal((await source.current()).accessKeyId, 'id-2')
  source.forget()
  assert.equal((await source.current()).accessKeyId, 'id-3')
  const bare = new CredentialSource({ ...unset, containerUrl })
  await assert.rejects(bare.current(), /the endpoint of credentials answered 401/)
})

test('an instance gives the keys of its role for a token of version 2', async (t) => {
  const calls: string[] = []
  const instanceUrl = await serve(t, ({ method, url, headers }) => {
    calls.push(`${method} ${url}`)
    if (url === '/latest/api/token')
      return method === 'PUT' && headers['x-aws-ec2-metadata-token-ttl-seconds']
        ? { text: 'T0K3N' }
        : { status: 405, text: '' }
    if (headers['x-aws-ec2-metadata-token'] !== 'T0K3N') return { status: 401, text: '' }
    return { text: url!.endsWith('/') ? 'mail-role\n' : roleKeys(1, Date.now() + hourMs) }
  })
  const source = new CredentialSource({ ...unset, instanceUrl })
  assert.partialDeepStrictEqual(await source.current(), { accessKeyId: 'id-1', sessionToken: 'token' })
  const roles = '/latest/meta-data/iam/security-credentials/'
  assert.deepEqual(calls, ['PUT /latest/api/token', `GET ${roles}`, `GET ${roles}mail-role`])
})

test('without any source the error names all of them, and a later try may succeed', async (t) => {
  let hasRole = false
  const instanceUrl = await serve(t, ({ url }) =>
    hasRole
      ? {
          text: url!.endsWith('token') ? 'T' : url!.endsWith('/') ? 'role' : roleKeys(7, Date.now() + hourMs),
        }
      : { status: 404, text: '' },
  )
  const source = new CredentialSource({ ...unset, instanceUrl })
  await assert.rejects(source.current(), /set AWS_ACCESS_KEY_ID .* or give this machine a role/)
  hasRole = true
  assert.equal((await source.current()).accessKeyId, 'id-7')
})

test('an endpoint that never ends its answer, or answers no keys, gives none', async (t) => {
  const long = await serve(t, () => ({ text: 'x'.repeat(100_000) }))
  await assert.rejects(new CredentialSource({ ...unset, containerUrl: long }).current(), /answers too much/)
  const other = await serve(t, () => ({ text: '{}' }))
  await assert.rejects(new CredentialSource({ ...unset, containerUrl: other }).current(), /no credentials/)
})
