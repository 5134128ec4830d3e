// Checks the Compose file: known keys, no undefined names, no password in it, and nothing open that should be closed.
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { readSettings } from '../../src/config/settings.ts'
import { checkComposition, readComposition } from './composition.ts'
import { environmentOf, readStages, root, textsOf } from './dockerfile.ts'

const file = join(root, 'deploy/compose.yaml')
const { services, secrets } = readComposition(file)
const posthorn = services['posthorn']!
const image = readStages().at(-1)!

/** The environment a person sets before the first start. */
const written = {
  POSTHORN_MAIL_HOST: 'mx.example.com',
  POSTHORN_MANAGED_DOMAIN: 'inbox.example.com',
  POSTHORN_ACME: 'you@example.com',
}

function fill(value: string): string {
  return value.replace(/\$\{(\w+)(?::\?[^}]*)?\}/g, (_, name: keyof typeof written) => {
    assert.ok(written[name], `${name} is asked for`)
    return written[name]
  })
}

test('the compose file has only keys of the specification, and its references exist', () => {
  checkComposition(file)
  const { context, dockerfile } = posthorn.build as { context: string; dockerfile: string }
  assert.ok(existsSync(join(root, 'deploy', context, dockerfile)))
})

test('secrets are files outside the repository, and no value holds one', () => {
  const ignored = readFileSync(join(root, '.gitignore'), 'utf8').split('\n')
  assert.ok(ignored.includes('/deploy/secrets/'))
  for (const { file } of Object.values(secrets)) assert.match(file, /^\.\/secrets\/[\w.-]+$/)
  for (const { environment = {} } of Object.values(services))
    for (const [name, value] of Object.entries(environment)) {
      if (/PASSWORD|SECRET|KEY|DATABASE_URL/.test(name)) assert.match(value, /^\/run\/secrets\//, name)
      assert.doesNotMatch(String(value), /:-/, `${name} has no default that works`)
    }
})

test('the compose file’s settings are valid on top of the image’s', () => {
  const own = Object.entries(posthorn.environment!).map(([name, value]) => [name, fill(value)])
  const set = { ...environmentOf(image), ...Object.fromEntries(own) }
  const names = Object.keys(set).filter((name) => name.startsWith('POSTHORN_'))
  const settings = readSettings(Object.fromEntries(names.map((name) => [name, set[name]])))
  assert.ok(settings.acme && settings.clamd && !settings.isDevelopment)
  assert.equal(settings.publicUrl, 'https://mx.example.com')
  const target = (port: number) => `:${port}`
  assert.deepEqual(posthorn.ports, [
    `0.0.0.0:25${target(settings.smtp.port)}`,
    `0.0.0.0:80${target(settings.http.port)}`,
    `0.0.0.0:443${target(settings.https!.port)}`,
    `127.0.0.1:8026${target(settings.operator.port)}`,
  ])
  assert.ok(posthorn.volumes!.some((volume) => volume.endsWith(`:${settings.dataDir}`)))
})

test('commands in the image find the settings file', () => {
  const folder = textsOf(image, 'WORKDIR').at(-1)!
  const mounted = posthorn.secrets!.flatMap((secret) => (typeof secret === 'string' ? [] : [secret.target]))
  assert.deepEqual(mounted, [`${folder}/.env`])
  const [, cache] = posthorn.tmpfs!
  assert.ok(cache!.startsWith(`${environmentOf(image)['NODE_COMPILE_CACHE']}:uid=64990,gid=64990`))
})

test('the stop period is longer than the drain', () => {
  assert.ok(Number.parseInt(posthorn.stop_grace_period!, 10) > 30)
})

test('the compose file’s clamd has the options that judging attachments needs', () => {
  const page = readFileSync(join(root, 'docs/operating.md'), 'utf8')
  const wanted = /`clamd\.conf` say:\n\n```\n([^`]+)```/.exec(page)![1]!.trim().split('\n')
  const lines = readFileSync(join(root, 'deploy/clamav/clamd.conf'), 'utf8').split('\n')
  assert.ok(wanted.length > 3)
  for (const line of wanted) assert.ok(lines.includes(line), line)
})
