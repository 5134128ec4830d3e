// Pastes the commands of README into one shell; their output must match the page.
import assert from 'node:assert/strict'
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { before, test } from 'node:test'
import { DnsServer } from '../support/dns-server.ts'
import { compareAnswer } from '../support/page-answer.ts'
import { type Posthorn, startPosthorn } from '../support/service.ts'
import { until } from '../support/until.ts'

const curlMissing = existsSync('/usr/bin/curl') ? null : 'curl is not installed'
const root = resolve(import.meta.dirname, '../..')

interface Step {
  commands: string[]
  /** The JSON on the page for the last of the commands that prints any. */
  answer: unknown
}

/** The page's commands except npm's, block by block, each with the output below it. */
function readSteps(path: string): Step[] {
  const steps: Step[] = []
  for (const [, language, text] of readFileSync(join(root, path), 'utf8').matchAll(
    /^```(\w+)\n([\s\S]*?)^```$/gm,
  )) {
    if (language === 'json') steps.at(-1)!.answer ??= JSON.parse(text!)
    if (language !== 'sh' || /^npm /m.test(text!)) continue
    // A line continues after a backslash or a pipe.
    const commands = text!.trim().split(/(?<![\\|])\n/)
    steps.push({ commands, answer: undefined })
  }
  return steps
}

/** One shell. Commands are pasted one after another unchanged, except for the service's address. */
class Shell {
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>
  readonly #posthorn: Posthorn
  #said = ''
  #complaints = ''

  constructor(posthorn: Posthorn, folder: string) {
    this.#posthorn = posthorn
    symlinkSync(posthorn.folder, join(folder, 'data'))
    symlinkSync(join(root, 'bin'), join(folder, 'bin'))
    this.#child = spawn('/bin/sh', [], { cwd: folder, env: posthorn.env, stdio: ['pipe', 'pipe', 'pipe'] })
    this.#child.stdout.on('data', (text) => (this.#said += text))
    this.#child.stderr.on('data', (text) => (this.#complaints += text))
    // The stream has no end, so curl stops after a moment. Status 28 of curl means that its time limit ended, as expected.
    this.#child.stdin.write(`set -u
      curl() { case "$*" in "-N "*) command curl --max-time 1 "$@"; [ $? = 28 ] ;; *) command curl "$@" ;; esac; }\n`)
  }

  /** Returns the command's output. The command must succeed. */
  async run(command: string): Promise<string> {
    const { http, smtp } = this.#posthorn
    const line = command
      .replaceAll('http://127.0.0.1:8025', http)
      .replaceAll('smtp://127.0.0.1:2525', `smtp://${smtp.host}:${smtp.port}`)
    this.#said = this.#complaints = ''
    const end = /\nended with (\d+)\n$/
    this.#child.stdin.write(`${line}\nprintf '\\nended with %s\\n' $?\n`)
    const status = await until(command, () => end.exec(this.#said)?.[1], { timeoutMs: 60_000 }).catch(
      (error) => assert.fail(`${error}\n${this.#said}\n${this.#complaints}`),
    )
    assert.equal(status, '0', `${command}\n${this.#said}\n${this.#complaints}`)
    return this.#said.replace(end, '')
  }

  async end(): Promise<void> {
    const ended = once(this.#child, 'close')
    this.#child.stdin.end()
    await ended
  }
}

before(() => assert.ok(!process.env['CI'] || !curlMissing, `in CI nothing is skipped: ${curlMissing}`))

test('the commands of README return the answers it shows', { skip: curlMissing ?? false }, async (t) => {
  const dns = await DnsServer.start()
  t.after(() => dns.close())
  const posthorn = await startPosthorn(t, { env: { POSTHORN_DNS: dns.address } })
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-page-'))
  const shell = new Shell(posthorn, folder)
  t.after(async () => {
    await shell.end()
    rmSync(folder, { recursive: true, force: true })
  })
  const ids = new Map<string, string>()
  const steps = readSteps('README.md')
  assert.ok(steps.length > 3)
  for (const { commands, answer } of steps) {
    const printed: string[] = []
    for (const command of commands) {
      const text = await shell.run(command)
      if (text !== '') printed.push(text)
    }
    if (answer !== undefined) compareAnswer(answer, JSON.parse(printed.at(-1)!), ids, commands.join('\n'))
    for (const text of answer === undefined ? printed : printed.slice(0, -1))
      assert.ok(!text.includes('"error"'), `${commands.join('\n')}\n${text}`)
  }
})
