// Runs every example of docs/ in curl, TypeScript and Python against a node, and checks the answers that pages show.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { before, type TestContext, test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { type Authority, trustAuthority } from '../support/certificates.ts'
import { run } from '../support/command.ts'
import { publish } from '../support/customer-domain.ts'
import { DnsServer } from '../support/dns-server.ts'
import { makePlace, startNode, type TestNode } from '../support/node.ts'
import { compareAnswer } from '../support/page-answer.ts'
import { type Language, languages, type Page, readPages } from '../support/page-examples.ts'
import { installWheel } from '../support/python-wheel.ts'
import { type Call, type RecordingProxy, startRecordingProxy } from '../support/recording-proxy.ts'
import { installSdk } from '../support/sdk-package.ts'
import { inherited } from '../support/service.ts'
import { startReceiver } from '../support/webhook-receiver.ts'

const root = resolve(import.meta.dirname, '../..')
/** The story comes first, because its answers count inboxes. Then the page that verifies the domain of the others. */
const first = ['docs/api.md', 'docs/domains.md']
const order = ({ path }: Page) => (first.includes(path) ? first.indexOf(path) : first.length)
const pages = readPages().sort((one, other) => order(one) - order(other))
const withExamples = pages.filter(({ groups }) => groups.length > 0)

/** The unmarked blocks that call the API, by their first lines. */
const notMarked = [
  // tests/programs/agents-page.test.ts runs these loops, which do not end.
  `docs/agents.md: : "\${API:?}" "\${POSTHORN_KEY:?}" "\${INBOX:?}"`,
  "docs/agents.md: import { readFile, writeFile } from 'node:fs/promises'",
  'docs/agents.md: import json, os, time',
  "docs/agents.md: import { readFile, writeFile } from 'node:fs/promises'",
  'docs/agents.md: import os, pathlib',
  // These commands need a deployment.
  'docs/production.md: posthorn org create --name Acme --active',
]
const callsApi = /\/v1\/|from ['"]posthorn-client|from posthorn|\bposthorn\.\w+(?:\.\w+)*\(/
const isTransient = ({ status }: Call) => [409, 423, 429, 503].includes(status)
/** A call without an answer has status 0. */
const isSuccess = ({ status }: Call) => status >= 200 && status < 300

test('pages: each API example is in curl, TypeScript and Python, and is run by a test', () => {
  assert.deepEqual(
    pages.flatMap(({ mistakes }) => mistakes),
    [],
  )
  const calling = pages.flatMap(({ path, unmarked }) =>
    unmarked.filter(({ text }) => callsApi.test(text)).map(({ text }) => `${path}: ${text.split('\n')[0]}`),
  )
  assert.deepEqual(
    calling,
    notMarked,
    'each other block that calls the API is marked, so that a test runs it',
  )
})

interface Stage {
  node: TestNode
  secret: string
  dns: DnsServer
  folder: string
  env: Record<string, string>
  /** Returns a block with the addresses of this node. */
  adapt(text: string, base: string): string
}

async function setStage(t: TestContext, authority: Authority): Promise<Stage> {
  const dns = await DnsServer.start()
  t.after(() => dns.close())
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-pages-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const { key, cert } = authority.issue('localhost')
  const write = (name: string, text: string) => {
    writeFileSync(join(folder, name), text)
    return join(folder, name)
  }
  const trusted = write('authority.pem', authority.cert)
  const receiver = await startReceiver(t)
  const node = await startNode(await makePlace(t), {
    env: {
      POSTHORN_DELIVERY: 'capture',
      POSTHORN_MANAGED_DOMAIN: 'inbox.localhost',
      POSTHORN_DNS: dns.address,
      POSTHORN_ALLOW_PRIVATE_NETWORKS: 'true',
      POSTHORN_SUBMISSIONS: '127.0.0.1:0',
      POSTHORN_SMTP_TLS_CERT: write('cert.pem', cert),
      POSTHORN_SMTP_TLS_KEY: write('key.pem', key),
    },
  })
  const { secret } = await node.createCaller({
    limits: { requestsPerMinute: 600, recipientsPerMessage: 50, managedStarter: 1000 },
  })
  mkdirSync(join(folder, 'data'))
  write('data/development-key', secret)
  // A call of a webhook, as the page about webhooks verifies it.
  const call = { id: 'msg_1', date: new Date(), body: '{"type":"webhook.test","data":{}}' }
  const webhookSecret = `whsec_${Buffer.alloc(24, 7).toString('base64')}`
  write('body', call.body)
  const submissions = String(node.app.listening.submissions!.port)
  const env = Object.assign(inherited(), {
    HOME: folder,
    POSTHORN_KEY: secret,
    WEBHOOK_SECRET: webhookSecret,
    WEBHOOK_ID: call.id,
    WEBHOOK_TIMESTAMP: String(Math.floor(call.date.getTime() / 1000)),
    WEBHOOK_SIGNATURE: new Webhook(webhookSecret).sign(call.id, call.date, call.body),
    CURL_CA_BUNDLE: trusted,
    NODE_EXTRA_CA_CERTS: trusted,
    SSL_CERT_FILE: trusted,
  })
  const adapt = (text: string, base: string) =>
    (text.includes('mx.example.com') ? text.replaceAll(/\b465\b/g, submissions) : text)
      .replaceAll('mx.example.com', 'localhost')
      .replaceAll('http://127.0.0.1:8025', base)
      .replaceAll('smtp://127.0.0.1:2525', `smtp://${node.smtp.host}:${node.smtp.port}`)
      .replaceAll('https://app.example.com', receiver.url(''))
  return { node, secret, dns, folder, env, adapt }
}

/** Each example ends with a request to the proxy, which then counts later calls for the next example. */
const boundaries: Record<Language, (url: string) => string> = {
  sh: (url) => `command curl -fsS ${url}`,
  ts: (url) => `await fetch('${url}')`,
  python: (url) => `__import__("urllib.request").request.urlopen("${url}").close()`,
}

const programs: Record<Language, { file: string; command: string; args: string[] }> = {
  sh: { file: 'page.sh', command: 'bash', args: ['-eu', '-o', 'pipefail'] },
  ts: { file: 'page.mts', command: process.execPath, args: [] },
  python: { file: 'page.py', command: 'python3', args: [] },
}

function programOf({ groups }: Page, language: Language, base: string, { adapt }: Stage): string {
  return groups
    .map(
      (group, index) =>
        `${adapt(group.programs[language], base)}\n${boundaries[language](`${base}/-/${index}`)}\n`,
    )
    .join('\n')
}

/** Runs the examples of a page as one program. Returns the calls of each example. */
async function runPage(t: TestContext, page: Page, language: Language, stage: Stage): Promise<Call[][]> {
  const { node, dns, folder, env, adapt } = stage
  const { host, port } = node.app.listening.http!
  const ends: number[] = []
  const prepare = async (index: number) => {
    for (const text of page.groups[index]?.before ?? []) {
      const prepared = await run('bash', ['-euc', adapt(text, proxy.url)], env, folder)
      assert.equal(prepared.status, 0, `${page.path}: ${text}\n${prepared.stderr}`)
    }
  }
  const proxy: RecordingProxy = await startRecordingProxy(t, `http://${host}:${port}`, {
    own: async (index) => {
      ends.push(proxy.calls.length)
      await prepare(Number(index) + 1)
    },
    // Publishes the records of a domain in DNS, as its owner does by hand.
    answered: ({ method, path, status, answer }) => {
      if (method === 'POST' && path === '/v1/domains' && status === 201)
        publish(dns, JSON.parse(answer), ['outbound', 'inbound'])
    },
  })
  await prepare(0)
  const { file, command, args } = programs[language]
  writeFileSync(join(folder, file), programOf(page, language, proxy.url, stage))
  const { status, stdout, stderr } = await run(command, [...args, file], env, folder)
  const failure = `${page.path} in ${language}, after example ${ends.length}\n${stdout}\n${stderr}`
  assert.deepEqual([status, ends.length], [0, page.groups.length], failure)
  return ends.map((end, index) => proxy.calls.slice(ends[index - 1] ?? 0, end))
}

/**
 * The last answer must be the one on the page, or a success if the page shows none. Each other call must succeed, if not
 * at once, then when it is repeated.
 */
function judge(page: Page, index: number, calls: Call[], ids: Map<string, string>): void {
  const { line, answer } = page.groups[index]!
  const last = calls.at(-1)
  const failed = calls.find((call, position) => {
    if (call === last && answer !== undefined) return false
    const isSame = ({ method, path }: Call) => method === call.method && path === call.path
    const isRepeated = calls.slice(position + 1).some((later) => isSame(later) && isSuccess(later))
    return !isSuccess(call) && !(isTransient(call) && isRepeated)
  })
  const at = `${page.path}:${line}`
  if (failed) assert.fail(`${at}: ${failed.method} ${failed.path}: ${failed.status} ${failed.answer}`)
  if (answer !== undefined) compareAnswer(answer, JSON.parse(last?.answer ?? 'null'), ids, at)
}

/** The calls of each page in each language. */
const tried = new Map<Page, Map<Language, Call[]>>()
const needed: Record<Language, string[]> = {
  sh: ['bash', 'curl', 'jq', 'openssl'],
  ts: [],
  python: ['python3'],
}
const missingOf = (language: Language) =>
  needed[language].find((program) => spawnSync('which', [program]).status !== 0)

before(() => {
  const missing = languages.map(missingOf).find((program) => program !== undefined)
  assert.ok(!process.env['CI'] || !missing, `in CI nothing is skipped: ${missing} is not installed`)
})

const install: Record<Language, (t: TestContext, stage: Stage) => Promise<void>> = {
  sh: async () => {},
  ts: async (t, { folder }) => {
    const modules = join((await installSdk(t)).folder, 'node_modules')
    symlinkSync(join(root, 'node_modules/nodemailer'), join(modules, 'nodemailer'))
    symlinkSync(modules, join(folder, 'node_modules'))
  },
  python: async (t, { env }) => void Object.assign(env, { PYTHONPATH: await installWheel(t) }),
}

test('pages: the examples run, and their answers are those of the pages', {
  concurrency: true,
}, async (t) => {
  const authority = trustAuthority(t)
  await Promise.all(
    languages.map((language) => {
      const missing = missingOf(language)
      const skip = missing ? `${missing} is not installed` : false
      return t.test(`in ${language}`, { skip, concurrency: 1 }, async (part) => {
        const stage = await setStage(part, authority)
        await install[language](part, stage)
        for (const page of withExamples)
          await part.test(page.path, (one) => tryPage(one, page, language, stage))
        if (language === 'ts') await part.test('the types of all', () => checkTypes(stage))
      })
    }),
  )
})

/** Prints the operations that each example calls. */
async function tryPage(t: TestContext, page: Page, language: Language, stage: Stage): Promise<void> {
  const calls = await runPage(t, page, language, stage)
  const ids = new Map<string, string>()
  for (const [index, some] of calls.entries()) {
    judge(page, index, some, ids)
    const made = new Set(some.map(({ method, path }) => `${method} ${path.replace(/\?.*/, '')}`))
    t.diagnostic(`${language} ${page.path}:${page.groups[index]!.line} ${[...made].join(', ')}`)
  }
  const before = tried.get(page) ?? new Map()
  tried.set(page, before.set(language, calls.flat()))
}

/** The programs of all pages are valid under `strict`. */
async function checkTypes(stage: Stage): Promise<void> {
  const files = withExamples.map((page, index) => {
    const file = `page-${index}.mts`
    writeFileSync(join(stage.folder, file), programOf(page, 'ts', 'http://127.0.0.1:8025', stage))
    return file
  })
  const options = {
    target: 'es2022',
    module: 'nodenext',
    strict: true,
    noEmit: true,
    types: ['node', 'nodemailer'],
  }
  const typeRoots = [join(root, 'node_modules/@types')]
  const compilerOptions = Object.assign(options, { exactOptionalPropertyTypes: true, typeRoots })
  writeFileSync(join(stage.folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files }))
  const compiled = await run(join(root, 'node_modules/.bin/tsc'), ['-p', '.'], inherited(), stage.folder)
  assert.equal(compiled.status, 0, `${withExamples.map(({ path }) => path)}\n${compiled.stdout}`)
}

/** The cells below "Posthorn" in the table of a page about another service. */
function rowsOf({ text }: Page): string[] {
  const lines = text.split('\n').filter((line) => line.startsWith('|'))
  const cells = lines.map((line) => line.split('|').map((cell) => cell.trim()))
  const column = cells[0]?.indexOf('Posthorn') ?? -1
  return cells.slice(2).flatMap((row) => row[column] ?? [])
}

/** Names and texts in a JSON document, in one list. */
function wordsOf(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  if (value === null || typeof value !== 'object') return []
  return Object.entries(value).flatMap(([name, member]) => [name, ...wordsOf(member)])
}

function wordsOfRequest({ path, headers, body }: Call): string[] {
  const { searchParams } = new URL(path, 'http://service')
  const document = /^[{[]/.test(body) ? JSON.parse(body) : null
  return [...searchParams.keys(), ...Object.keys(headers), ...wordsOf(document)]
}

const comments: Record<Language, RegExp> = {
  sh: /(?<=^|\s)#.*/gm,
  ts: /(?<=^|\s)\/\/.*/gm,
  python: /(?<=^|\s)#.*/gm,
}

/** Whether a program has a name as a whole. `Message-ID` is `messageId` in nodemailer. */
function isNamed(name: string, { groups }: Page, language: Language): boolean {
  const code = groups.map(({ programs }) => programs[language].replaceAll(comments[language], '')).join('\n')
  const snake = name.replaceAll(/(?<=[a-z])[A-Z]/g, (letter) => `_${letter}`)
  const forms = [name, name.replaceAll('-', ''), ...(language === 'python' ? [snake] : [])]
  const pattern = forms.map((form) => form.replaceAll('.', '\\.')).join('|')
  return new RegExp(`(?<![\\w-])(?:${pattern})(?![\\w-])`, 'i').test(code)
}

/** Matches `POST /v1/domains/{domainId}/verify` with its calls. */
function patternOf(operation: string): RegExp {
  return new RegExp(`^${operation.replaceAll(/\{\w+\}/g, '[^/?]+')}(?:\\?|$)`)
}

for (const page of pages.filter(({ path }) => path.startsWith('docs/coming-from/')))
  test(`pages: each row of ${page.path} is tried by the examples of that page, in each language`, (t) => {
    const rows = rowsOf(page)
    assert.ok(rows.length > 3, 'it has a table with a column "Posthorn"')
    for (const language of languages.filter((one) => !missingOf(one))) {
      const calls = (tried.get(page)?.get(language) ?? []).filter(isSuccess)
      assert.ok(calls.length > 0, `the examples in ${language} ran`)
      // The answers on the page are those of the service. Others have each field, whether an example uses it or not.
      const shown = page.groups.flatMap(({ answer }) => wordsOf(answer))
      const words = new Set([...calls.flatMap(wordsOfRequest), ...shown])
      const isTried = (name: string) => {
        if (/^[A-Z]+ \//.test(name))
          return calls.some(({ method, path }) => patternOf(name).test(`${method} ${path}`))
        return words.has(name) || isNamed(name, page, language)
      }
      for (const row of rows) {
        const names = [...row.matchAll(/`([^`]+)`/g)].map(([, name]) => name!)
        assert.ok(names.length > 0 || row.startsWith('None'), `this row names nothing to try: ${row}`)
        assert.deepEqual(
          names.filter((name) => !isTried(name)),
          [],
          `not tried in ${language}: ${row}`,
        )
      }
      t.diagnostic(`${rows.length} rows tried in ${language}`)
    }
  })
