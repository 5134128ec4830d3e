// The command line for operators: help, exit statuses, one JSON document per command, one line per error.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { inertLine } from '../../src/cli/inert-text.ts'
import { ownProgram, run, runCommand } from '../support/command.ts'
import { inherited, startPosthorn } from '../support/service.ts'
import type { Scope } from '../support/until.ts'

const nowhere = '00000000-0000-7000-8000-000000000000'

/** A folder in which commands must not leave files. */
function emptyFolder(scope: Scope): string {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-cli-'))
  scope.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

const commands = [
  ...[
    'serve',
    'migrate',
    'doctor',
    'demo',
    'org',
    'key',
    'domain',
    'queue',
    'captured',
    'mail',
    'mcp',
    'nodes',
    'operator',
  ],
  ...['certificate', 'dkim', 'secret', 'backup', 'blobs', 'restore', 'completion'],
]

test('help names every command, and every command has help of its own', async (t) => {
  const folder = emptyFolder(t)
  const main = await run(ownProgram, ['--help'], inherited(), folder)
  assert.equal(main.status, 0)
  assert.deepEqual(await runCommand(['--help'], inherited(), folder), main)
  for (const command of commands) assert.match(main.stdout, new RegExp(`^ +(posthorn )?${command}\\b`, 'm'))
  for (const command of commands) {
    const { status, stdout } = await runCommand([command, '--help'], inherited(), folder)
    assert.equal(status, 0, command)
    assert.match(stdout, new RegExp(`^Usage: posthorn ${command}`), command)
  }
})

test('the program exits with 2 after wrong use and 1 after a wrong setting, and leaves no files', async (t) => {
  const folder = emptyFolder(t)
  for (const [words, env, status, complaint] of [
    [['frobnicate'], inherited(), 2, /frobnicate/],
    [['serve', '--json'], { ...inherited(), POSTHORN_HTTP: 'here' }, 1, /^posthorn: [^\n]+\n$/],
  ] as const) {
    const answer = await run(ownProgram, [...words], env, folder)
    assert.deepEqual([answer.status, answer.stdout], [status, ''], answer.stderr)
    assert.match(answer.stderr, complaint)
    assert.deepEqual(await runCommand([...words], env, folder), answer)
  }
  assert.deepEqual(readdirSync(folder), [])
})

/** The completions of each shell for these words, as if TAB follows them. */
const completers: [shell: string, needs: string, ask: (script: string, words: string[]) => string[]][] = [
  [
    ...(['bash', 'bash'] as const),
    (script, words) => {
      const line = words.map((word) => `'${word}'`).join(' ')
      const typed = `COMP_LINE='${words.join(' ')}'; COMP_POINT=\${#COMP_LINE}`
      const asking = `COMP_WORDS=(${line}); COMP_CWORD=${words.length - 1}; ${typed}; _posthorn; printf '%s\\n' "\${COMPREPLY[@]}"`
      return ['-c', `${script}\n${asking}`]
    },
  ],
  [...(['fish', 'fish'] as const), (script, words) => ['-c', `${script}\ncomplete -C '${words.join(' ')}'`]],
]

for (const [shell, needs, ask] of completers)
  test(`${shell} completes the commands with the printed script`, {
    skip: spawnSync(needs, ['--version']).error ? `${needs} is not installed` : false,
  }, async (t) => {
    const folder = emptyFolder(t)
    const { status, stdout: script } = await run(ownProgram, ['completion', shell], inherited(), folder)
    assert.equal(status, 0)
    const complete = async (...words: string[]) => {
      const { stdout, stderr } = await run(needs, ask(script, words), inherited(), folder)
      assert.equal(stderr, '')
      return stdout.split('\n').flatMap((line) => line.split('\t')[0] || [])
    }
    assert.deepEqual((await complete('posthorn', 'ca')).sort(), ['captured'])
    for (const command of commands) assert.ok((await complete('posthorn', '')).includes(command), command)
    const below = (await complete('posthorn', 'captured', '')).filter((word) => !word.startsWith('-'))
    assert.deepEqual(below.sort(), ['help', 'list', 'show'])
    assert.deepEqual(await complete('posthorn', 'key', 'create', '--sc'), ['--scopes'])
    assert.deepEqual((await complete('posthorn', 'completion', 'z')).sort(), ['zsh'])
    const chosen = await complete('posthorn', 'completion', 'bash', '')
    assert.deepEqual(
      chosen.filter((word) => !word.startsWith('-')),
      [],
    )
    const create = ['posthorn', 'key', 'create']
    assert.deepEqual(await complete(...create, '--kind', 's'), ['server'])
    assert.ok((await complete(...create, '--scopes', '')).includes('mailbox:read'))
    const second = await complete(...create, '--scopes', 'delivery:read,mailbox:r')
    // Bash replaces only the text after the last colon.
    assert.deepEqual(second, [shell === 'bash' ? 'read' : 'delivery:read,mailbox:read'])
    assert.deepEqual(await complete(...create, '--org', ''), [])
  })

test('zsh accepts the printed completion script', {
  skip: spawnSync('zsh', ['--version']).error ? 'zsh is not installed' : false,
}, async (t) => {
  const folder = emptyFolder(t)
  const { stdout: script } = await run(ownProgram, ['completion', 'zsh'], inherited(), folder)
  const asked = `autoload -U compinit; compinit -D; ${script}\nprint -r -- $_comps[posthorn]`
  const { status, stdout, stderr } = await run('zsh', ['-fc', asked], inherited(), folder)
  assert.deepEqual([status, stdout.trim(), stderr], [0, '_posthorn', ''])
})

const wrongUses: [string[], RegExp][] = [
  [['frobnicate'], /frobnicate/],
  [['serve', '--roles', 'cook'], /api, mx, delivery, webhooks, jobs/],
  [['serve', '--colour'], /--colour/],
  [['org', 'create'], /--name/],
  [['org', 'show', 'one'], /not an id/],
  [['org', 'limits', nowhere, 'messagesPerYear=1'], /messagesPerMinute/],
  [['org', 'limits', nowhere, 'inboxes=many'], /whole number/],
  [['org', 'limits', nowhere, 'serverKeys=1'], /on or off/],
  [['key', 'create', '--org', nowhere, '--name', 'x', '--scopes', 'mailbox:eat'], /mailbox:read/],
  [['key', 'create', '--org', nowhere, '--name', 'x', '--scopes', '*', '--expires-in', 'soon'], /30d/],
  [['queue', 'show'], /domain/],
  [['backup'], /folder/],
  [['backup', 'verify'], /folder/],
  [['restore', 'a', '--passphrase', 'words'], /--passphrase/],
  [['key', 'list'], /posthorn key list --help/],
  [['org', 'create', '--name', '\x1b[31mAcme'], /1 to 200 characters in one line/],
  [['org', 'create', '--name', ' '], /1 to 200 characters in one line/],
  [['org', 'rename', nowhere, 'Ac\nme'], /1 to 200 characters in one line/],
  [['key', 'create', '--org', nowhere, '--scopes', '*', '--name', 'a'.repeat(201)], /1 to 200 characters/],
  [['key', 'revoke'], /either the id of a key, or its organization and name/],
  [['key', 'revoke', '--org', nowhere], /either the id of a key, or its organization and name/],
  [['key', 'revoke', nowhere, '--org', nowhere, '--name', 'x'], /either the id of a key/],
  [['completion', 'tcsh'], /bash, zsh, fish/],
]

for (const [words, complaint] of wrongUses)
  test(`posthorn ${inertLine(words.join(' ')).slice(0, 100)} exits with 2 for wrong use`, async (t) => {
    const { status, stdout, stderr } = await runCommand(words, inherited(), emptyFolder(t))
    assert.equal(status, 2, stderr)
    assert.equal(stdout, '')
    assert.match(stderr, complaint)
  })

const wrongSettings: [string, string, RegExp][] = [
  ['POSTHORN_HTTP', 'here', /write one address, such as 127\.0\.0\.1:8025/],
  ['POSTHORN_SMTP', '127.0.0.1:70000', /write one address, such as 127\.0\.0\.1:2525/],
  ['POSTHORN_SMTP', '127.0.0.1:2525,[::1]:2525', /write one address, such as/],
  ['POSTHORN_DELIVERY', 'pigeon', /direct, relay or capture/],
  ['POSTHORN_DELIVERY', 'relay', /POSTHORN_RELAY_URL/],
  ['POSTHORN_RETRY_SCHEDULE', '1m,later', /1m,5m/],
  ['POSTHORN_DEFAULT_LIMITS', '{"inboxes":-1}', /messagesPerMinute/],
  ['POSTHORN_HTPP', '127.0.0.1:1', /POSTHORN_HTPP is not a setting: did you mean POSTHORN_HTTP\?/],
  ['POSTHORN_HOST', '127.0.0.1', /POSTHORN_HOST is not a setting: docs/],
  ['POSTHORN_COLOUR', 'red', /POSTHORN_COLOUR is not a setting: docs\/settings\.md lists all settings/],
  ['POSTHORN_CLAMD', 'localhost', /127\.0\.0\.1:3310/],
  [
    'POSTHORN_RETENTION',
    'events=90d',
    /submissions=90d,messages=365d,audit=365d,sent-content=30d,operator-mail=14d/,
  ],
  ['POSTHORN_MAX_DOWNLOAD_SIZE', '25M', /26214400/],
  ['POSTHORN_DNSBL', 'reject:x.test', /zen\.example\.org, tell:list\.example\.net/],
]

for (const [name, value, words] of wrongSettings)
  test(`${name}=${value} stops the start with one line`, async (t) => {
    const env = { ...inherited(), [name]: value }
    const { status, stdout, stderr } = await runCommand(['serve', '--json'], env, emptyFolder(t))
    assert.equal(status, 1, stderr)
    assert.equal(stdout, '')
    assert.match(stderr, /^posthorn: [^\n]+\n$/)
    assert.match(stderr, words)
  })

test('the commands work with a running service', async (t) => {
  const posthorn = await startPosthorn(t)
  const organization = await posthorn.cli<{ id: string }>(['org', 'create', '--name', 'Acme'])
  const attempt = (words: string[]) => runCommand(words, posthorn.env, tmpdir())

  await t.test('organizations are made, shown, approved, limited and suspended', async () => {
    const { organizations } = await posthorn.cli<{ organizations: { id: string; status: string }[] }>([
      'org',
      'list',
    ])
    assert.equal(organizations.find(({ id }) => id === organization.id)?.status, 'pending')
    assert.equal((await posthorn.cli(['org', 'approve', organization.id]))['status'], 'active')
    const limited = await posthorn.cli<{ limits: Record<string, number> }>([
      'org',
      'limits',
      organization.id,
      'inboxes=7',
      'managedStarter=9',
    ])
    assert.deepEqual([limited.limits['inboxes'], limited.limits['managedStarter']], [7, 9])
    for (const [word, isOn] of [
      ['on', true],
      ['off', false],
    ] as const)
      assert.equal(
        (await posthorn.cli(['org', 'limits', organization.id, `serverKeys=${word}`]))['serverKeys'],
        isOn,
      )
    assert.equal((await posthorn.cli(['org', 'suspend', organization.id]))['status'], 'suspended')
    const renamed = await posthorn.cli(['org', 'rename', organization.id, '  Ada & Söhne '])
    assert.equal(renamed['name'], 'Ada & Söhne')
    assert.equal((await posthorn.cli(['org', 'show', organization.id]))['name'], 'Ada & Söhne')
    // A program that uses the database exits by itself after its answer.
    const { status, stdout } = await run(ownProgram, ['org', 'show', organization.id], posthorn.env, tmpdir())
    assert.equal(status, 0)
    assert.match(stdout, /^ +messagesPerMinute +\d+\n +messagesPerDay +\d+\n +recipientsPerDay +\d+\n/m)
    assert.match(stdout, /^ +serverKeys +off$/m)
  })

  await t.test(
    'development’s organization may open a thousand managed inboxes, and others five',
    async () => {
      const { organizations } = await posthorn.cli<{
        organizations: { name: string; limits: { managedStarter: number } }[]
      }>(['org', 'list'])
      const made = await posthorn.cli<{ limits: { managedStarter: number } }>([
        'org',
        'create',
        '--name',
        'Other',
      ])
      assert.equal(organizations.find(({ name }) => name === 'Development')?.limits.managedStarter, 1000)
      assert.equal(made.limits.managedStarter, 5)
    },
  )

  await t.test(
    'keys are made with their restrictions, listed without their secrets, and revoked',
    async () => {
      const made = await posthorn.cli<Record<string, unknown>>([
        ...['key', 'create', '--org', organization.id, '--name', 'narrow', '--scopes', 'mailbox:read'],
        ...['--ip', '127.0.0.1', '--recipient-domain', 'Example.com', '--expires-in', '90m'],
      ])
      assert.match(String(made['secret']), /^ph_[0-9A-Za-z]{49}$/)
      assert.deepEqual(made['allowedRecipientDomains'], ['example.com'])
      const { stdout } = await attempt(['key', 'list', '--org', organization.id, '--json'])
      assert.equal(JSON.parse(stdout).keys[0].id, made['id'])
      assert.ok(!stdout.includes(String(made['secret'])))
      const listed = (await attempt(['key', 'list', '--org', organization.id])).stdout
      assert.match(listed, /mailbox:read +from 127\.0\.0\.1, to example\.com +until/)
      assert.notEqual((await posthorn.cli(['key', 'revoke', String(made['id'])]))['revokedAt'], null)
    },
  )

  await t.test('a key is revoked by its name, and a second key of that name gets a warning', async () => {
    const named = ['--org', organization.id, '--name', 'booking']
    const create = () => attempt(['key', 'create', ...named, '--scopes', '*', '--json'])
    const first = await create()
    assert.equal(first.stderr, '')
    const second = await create()
    const [one, two] = [JSON.parse(first.stdout).id, JSON.parse(second.stdout).id] as [string, string]
    assert.match(second.stderr, new RegExp(`another valid key has this name \\(${one}\\)`))
    const unclear = await attempt(['key', 'revoke', ...named])
    assert.equal(unclear.status, 1)
    assert.match(unclear.stderr, new RegExp(`several keys are named "booking".*${one}, ${two}`))
    await posthorn.cli(['key', 'revoke', two])
    assert.equal((await posthorn.cli(['key', 'revoke', ...named]))['id'], one)
    const none = await attempt(['key', 'revoke', ...named])
    assert.deepEqual([none.status, /there is no key "booking"/.test(none.stderr)], [1, true])
  })

  await t.test('an empty queue list is shown, and a missing queue is reported in one line', async () => {
    assert.deepEqual(await posthorn.cli(['queue', 'list']), { queues: [] })
    for (const verb of ['show', 'resume', 'flush', 'cancel']) {
      const { status, stdout, stderr } = await attempt(['queue', verb, 'example.com'])
      assert.equal(status, 1, verb)
      assert.equal(stdout, '')
      assert.match(stderr, /^posthorn: there is no queue "example\.com"[^\n]*\n$/)
    }
    assert.deepEqual(await posthorn.cli(['queue', 'cancel', '--org', organization.id]), {
      organization: organization.id,
      cancelled: 0,
    })
    for (const words of [[], ['example.com', '--org', organization.id], ['--org', 'Acme']])
      assert.equal((await attempt(['queue', 'cancel', ...words])).status, 2, words.join(' '))
  })

  await t.test('a missing object exits with 1, in one line', async () => {
    for (const words of [
      ['org', 'show', nowhere],
      ['org', 'approve', nowhere],
      ['key', 'revoke', nowhere],
      ['queue', 'cancel', '--org', nowhere],
      [
        ...['key', 'create', '--org', organization.id, '--name', 'x', '--scopes', '*'],
        ...['--inbox', `inb_${'0'.repeat(24)}`],
      ],
    ]) {
      const { status, stderr } = await attempt(words)
      assert.equal(status, 1, words.join(' '))
      assert.match(stderr, /^posthorn: there is no [^\n]+\n$/)
    }
  })

  await t.test('migrate lists the migrations', async () => {
    const { migrations } = await posthorn.cli<{ migrations: string[] }>(['migrate'])
    assert.equal(migrations[0], '0001_tables.sql')
  })

  await t.test('the doctor passes with the service, and knows the records to publish', async () => {
    const { status, checks, managedDomain } = await posthorn.cli<{
      status: string
      checks: { name: string; status: string; mend: string | null }[]
      managedDomain: { domain: string; dkim: { name: string; value: string }[] }
    }>(['doctor'])
    assert.equal(status, 'ok')
    assert.deepEqual(
      checks.filter(({ mend }) => mend !== null),
      [],
    )
    for (const name of ['settings', 'data folder', 'database', 'blobs', 'SMTP port', 'TLS certificate'])
      assert.ok(
        checks.some((check) => check.name === name && check.status === 'ok'),
        name,
      )
    assert.equal(managedDomain.dkim[0]!.name, `ph1._domainkey.${managedDomain.domain}`)
    assert.match(managedDomain.dkim[0]!.value, /^v=DKIM1;.*p=[A-Za-z0-9+/]{300,}/)
  })

  await t.test(
    'the doctor recognizes our listeners, another program there, and a wrong setting',
    async () => {
      const { port: smtpPort, host } = posthorn.smtp
      const another = createServer((_request, response) => response.end('another')).listen(0, '127.0.0.1')
      await once(another, 'listening')
      t.after(() => another.close())
      const env = {
        ...posthorn.env,
        POSTHORN_HTTP: posthorn.http.replace('http://', ''),
        POSTHORN_OPERATOR: `127.0.0.1:${(another.address() as AddressInfo).port}`,
        POSTHORN_SMTP: `${host}:${smtpPort}`,
      }
      const { status, stdout } = await run(ownProgram, ['doctor', '--json'], env, tmpdir())
      assert.equal(status, 1)
      const found = new Map<string, string>(
        JSON.parse(stdout).checks.map((check: { name: string; status: string }) => [
          check.name,
          check.status,
        ]),
      )
      assert.deepEqual(
        ['HTTP port', 'operator port', 'SMTP port'].map((name) => found.get(name)),
        ['ok', 'failed', 'ok'],
      )
      const wrong = await runCommand(
        ['doctor', '--json'],
        { ...posthorn.env, POSTHORN_MX_PORT: 'x' },
        tmpdir(),
      )
      assert.equal(wrong.status, 1)
      assert.equal(JSON.parse(wrong.stdout).checks[0].name, 'settings')
    },
  )

  await t.test('a second serve on the folder reports it and exits with 1', async () => {
    // If it is not refused, it runs until a signal, so it has a process of its own.
    const { status, stdout, stderr } = await run(ownProgram, ['serve', '--json'], posthorn.env, tmpdir())
    assert.equal(status, 1)
    assert.equal(stdout, '')
    assert.match(stderr, /another Posthorn uses/)
  })

  await t.test('the demo uses the running service, and its inboxes again', async () => {
    const env = { ...posthorn.env, POSTHORN_HTTP: posthorn.http.replace('http://', '') }
    const inboxes: unknown[] = []
    for (const _tour of ['first', 'second']) {
      // It listens for the signals of its process.
      const { status, stdout, stderr } = await run(ownProgram, ['demo', '--json'], env, tmpdir())
      assert.equal(status, 0, stderr)
      const { service, steps } = JSON.parse(stdout)
      assert.deepEqual(service, { origin: 'running', http: posthorn.http })
      inboxes.push(
        steps.slice(0, 2).map(({ answer }: { answer: { id?: string; inboxes?: { id: string }[] } }) => {
          return answer.id ?? answer.inboxes![0]!.id
        }),
      )
    }
    assert.deepEqual(inboxes[0], inboxes[1])
  })
})
