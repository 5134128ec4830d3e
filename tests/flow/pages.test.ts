// The commands of README and docs, run as they stand but for places and ids; their answers are what the pages show.
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { before, test } from 'node:test'
import { DnsServer } from '../support/dns-server.ts'
import { inherited, type Posthorn, run, startPosthorn } from '../support/service.ts'
import { until } from '../support/until.ts'

const curlMissing = existsSync('/usr/bin/curl') ? null : 'curl is not installed'
const root = resolve(import.meta.dirname, '../..')

interface Step {
  commands: string[]
  /** The JSON that the page shows for the last of them. */
  answer: unknown
}

/** The page's commands that call the API, each with the answer below it. */
function readSteps(path: string): Step[] {
  const steps: Step[] = []
  for (const [, language, text] of readFileSync(join(root, path), 'utf8').matchAll(
    /^```(\w+)\n([\s\S]*?)^```$/gm,
  )) {
    if (language === 'json') steps.at(-1)!.answer ??= JSON.parse(text!)
    if (language !== 'sh') continue
    const lines = text!.replaceAll('\\\n', ' ').split('\n')
    const commands = lines.filter((line) => line.startsWith('curl '))
    if (commands.length > 0) steps.push({ commands, answer: undefined })
  }
  return steps
}

const isId = (text: string) =>
  /^(?:[a-z]{3}_[a-f0-9]{24}|[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12})$/.test(text)
const isTime = (text: string) => /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(text)
const cut = '…'

/** Holds a live answer to the one shown; `…` stands for anything. Ids that are shown get to know their live ones. */
function compare(shown: unknown, live: unknown, ids: Map<string, string>, at = ''): void {
  if (shown === cut) return
  if (typeof shown === 'string' && typeof live === 'string' && isId(shown) && isId(live)) {
    assert.equal(ids.get(shown) ?? live, live, at)
    ids.set(shown, live)
  } else if (typeof shown === 'string' && isTime(shown)) assert.ok(isTime(String(live)), at)
  else if (Array.isArray(shown) && Array.isArray(live)) {
    assert.equal(live.length, shown.length, at)
    for (const [index, member] of shown.entries()) compare(member, live[index], ids, `${at}/${index}`)
  } else if (shown !== null && typeof shown === 'object') {
    const { [cut]: isCut, ...members } = shown as Record<string, unknown>
    const there = live as Record<string, unknown>
    if (!isCut) assert.deepEqual(Object.keys(there).sort(), Object.keys(members).sort(), at)
    for (const [name, member] of Object.entries(members)) compare(member, there?.[name], ids, `${at}/${name}`)
  } else assert.equal(live, shown, at)
}

/** Runs a command in a shell as its reader would; a stream is followed for a moment. */
async function play(posthorn: Posthorn, command: string, ids: Map<string, string>): Promise<string> {
  let line = command
    .replaceAll('http://127.0.0.1:8025', posthorn.http)
    .replaceAll('data/development-key', join(posthorn.folder, 'development-key'))
  for (const [shown, live] of ids) line = line.replaceAll(shown, live)
  const isStream = line.includes(' -N ')
  const env = {
    ...{ ...inherited(), API: posthorn.http },
    KEY: readFileSync(join(posthorn.folder, 'development-key'), 'utf8').trim(),
  }
  const curl = isStream ? 'curl -sS --max-time 1 ' : 'curl -sS '
  const { status, stdout, stderr } = await run('/bin/sh', ['-c', line.replace(/^curl /, curl)], env, root)
  // curl 28: the time is up, as it was to be.
  assert.ok(status === 0 || (isStream && status === 28), `${line}\n${stderr}`)
  return stdout
}

before(() => assert.ok(!process.env['CI'] || !curlMissing, `in CI nothing is skipped: ${curlMissing}`))

for (const page of ['README.md', 'docs/api.md'])
  test(`the commands of ${page} answer what it shows`, { skip: curlMissing ?? false }, async (t) => {
    const dns = await DnsServer.start()
    t.after(() => dns.close())
    const posthorn = await startPosthorn(t, { env: { POSTHORN_DNS: dns.address } })
    const ids = new Map<string, string>()
    const steps = readSteps(page)
    assert.ok(steps.length > 0)
    for (const { commands, answer } of steps)
      for (const [index, command] of commands.entries()) {
        const shown = index === commands.length - 1 ? answer : undefined
        if (shown === undefined) {
          const text = await play(posthorn, command, ids)
          assert.ok(!text.includes('"error"'), `${command}\n${text}`)
          continue
        }
        let [difference, text] = [null as unknown, '']
        const matches = async () => {
          text = await play(posthorn, command, ids)
          try {
            compare(shown, JSON.parse(text), ids)
            return true
          } catch (error) {
            difference = error
            // Mail is on its way for a moment; what changes something is asked for once.
            return / -X /.test(command) ? assert.fail(`${command}\n${text}\n${error}`) : null
          }
        }
        await until(command, matches, { timeoutMs: 20_000, everyMs: 200 }).catch((error) =>
          assert.fail(`${error}\n${text}\n${difference}`),
        )
      }
  })
