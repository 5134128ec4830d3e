// A real browser, driven over its DevTools protocol: a page's requests, its errors, and its content.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { inherited } from './service.ts'
import { type Scope, until } from './until.ts'

/**
 * The browser without windows takes a quarter less processor time. It is named by its own path, because the
 * script in `/usr/bin` would leave it running. Null if no browser is installed.
 */
export const chromiumPath = [
  '/usr/lib/chromium/chromium-headless-shell',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
].find((path) => existsSync(path))
export const chromiumMissing = chromiumPath ? null : 'chromium is not installed'

export interface Page {
  /** Every URL that the page requested. */
  requests: string[]
  /** Console errors, blocked requests, and exceptions. */
  complaints: string[]
  /** The value of an expression in the page. */
  evaluate<Value>(expression: string): Promise<Value>
  /** Reloads the page. Resolves once it has loaded, because an expression evaluated meanwhile would fail. */
  reload(): Promise<void>
  /** A PNG of the visible page. */
  screenshot(): Promise<Buffer>
}

interface Message {
  id?: number
  sessionId?: string
  method?: string
  params?: Record<string, unknown>
  result?: Record<string, unknown>
  error?: { message: string }
}

/** Opens the URL in a browser of its own, which ends with the scope. */
export async function openPage(scope: Scope, url: string): Promise<Page> {
  const profile = mkdtempSync(join(tmpdir(), 'posthorn-chromium-'))
  const flags = ['--headless', '--disable-gpu', '--disable-dev-shm-usage', '--disable-background-networking']
  const sandbox = process.getuid?.() === 0 ? ['--no-sandbox'] : []
  const listen = ['--remote-debugging-port=0', `--user-data-dir=${profile}`, '--window-size=1280,1000']
  const child = spawn(chromiumPath!, [...flags, ...sandbox, ...listen, 'about:blank'], {
    env: inherited(),
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const browser = new DevTools()
  scope.after(async () => {
    await browser.close()
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    rmSync(profile, { recursive: true, force: true, maxRetries: 50, retryDelay: 100 })
  })
  await browser.connect(await debuggerOf(child))
  const { targetId } = await browser.ask('Target.createTarget', { url: 'about:blank' })
  await browser.ask('Target.attachToTarget', { targetId, flatten: true })
  await until('the page', () => browser.sessionId)
  for (const part of ['Network', 'Runtime', 'Log', 'Page']) await browser.ask(`${part}.enable`)
  await browser.ask('Page.navigate', { url })
  const evaluate = async (expression: string) => {
    const answer = await browser.ask('Runtime.evaluate', { expression, returnByValue: true })
    return (answer['result'] as { value: never }).value
  }
  return {
    requests: browser.requests,
    complaints: browser.complaints,
    evaluate,
    reload: async () => {
      await until('the page', () => evaluate(`document.readyState === 'complete'`))
      const { loads } = browser
      await browser.ask('Page.reload')
      await until('the page anew', () => browser.loads > loads)
    },
    screenshot: async () => {
      const { data } = await browser.ask('Page.captureScreenshot')
      return Buffer.from(String(data), 'base64')
    },
  }
}

async function debuggerOf(child: ChildProcess): Promise<string> {
  for await (const line of createInterface({ input: child.stderr! })) {
    const [, url] = /^DevTools listening on (ws:\/\/.+)$/.exec(line) ?? []
    if (url) {
      child.stderr!.resume()
      return url
    }
  }
  throw new Error('the browser ended before it listened')
}

class DevTools {
  readonly requests: string[] = []
  readonly complaints: string[] = []
  sessionId = ''
  loads = 0
  #socket: WebSocket | null = null
  #next = 0
  readonly #waiting = new Map<number, (message: Message) => void>()

  async connect(url: string): Promise<void> {
    const socket = new WebSocket(url)
    socket.addEventListener('message', ({ data }) => this.#take(JSON.parse(String(data))))
    await once(socket as never, 'open')
    this.#socket = socket
  }

  /** The result of one command, sent to the page once it exists. Rejects if the browser refuses it. */
  async ask(method: string, params: object = {}): Promise<Record<string, unknown>> {
    const id = ++this.#next
    const session = this.sessionId && !method.startsWith('Target.') ? { sessionId: this.sessionId } : {}
    const answered = new Promise<Message>((resolve) => this.#waiting.set(id, resolve))
    this.#socket!.send(JSON.stringify({ id, method, params, ...session }))
    const { result, error } = await answered
    if (error) throw new Error(`${method}: ${error.message}`)
    return result ?? {}
  }

  async close(): Promise<void> {
    this.#socket?.close()
  }

  #take(message: Message): void {
    if (message.id !== undefined) {
      this.#waiting.get(message.id)?.(message)
      this.#waiting.delete(message.id)
      return
    }
    const params = message.params as Record<string, Record<string, unknown>>
    if (message.method === 'Target.attachedToTarget') this.sessionId = String(params['sessionId'])
    if (message.method === 'Page.loadEventFired') this.loads++
    if (message.method === 'Network.requestWillBeSent') this.requests.push(String(params['request']!['url']))
    if (message.method === 'Runtime.exceptionThrown')
      this.complaints.push(JSON.stringify(params['exceptionDetails']))
    if (message.method === 'Log.entryAdded' && params['entry']!['level'] === 'error')
      this.complaints.push(`${params['entry']!['text']} ${params['entry']!['url'] ?? ''}`)
    if (message.method === 'Runtime.consoleAPICalled' && String(params['type']) === 'error')
      this.complaints.push(JSON.stringify(params['args']))
  }
}
