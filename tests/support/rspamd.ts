// Rspamd for tests: Debian's, with a few rules of our own, no DNS and no Redis; and a fake with scripted answers.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { accessSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { RspamdAddress } from '../../src/scan/rspamd.ts'
import { freePort } from './free-port.ts'
import { type Scope, until } from './until.ts'

const program = '/usr/bin/rspamd'

/** The reason for skipping the tests with a real Rspamd, or false. */
export const rspamdMissing = findRspamd()

function findRspamd(): string | false {
  try {
    accessSync(program)
    return false
  } catch {
    if (process.env['CI']) throw new Error(`${program} is missing`)
    console.error(
      `SKIPPED: no mail is judged by a real Rspamd, for ${program} is missing: apt install rspamd`,
    )
    return `no ${program}`
  }
}

/** Rspamd refuses a mail with this text in its body. */
export const gtube = 'XJS*C4JDBQADN1.NSBN3*2IDNEN*GTUBE-STANDARD-ANTI-UBE-TEST-EMAIL*C.34X'

export interface TestRspamd {
  address: RspamdAddress
  start(): Promise<void>
  /** Sends SIGKILL to all its processes. Resolves once the first has ended. */
  kill9(): Promise<void>
  /** Stops its processes. Their connections stay open. */
  freeze(): void
  /** Resumes the processes. */
  thaw(): void
}

/**
 * Subjects trigger these rules: `offer` scores 6.5, `grey` 4.5, `action X` forces X, `slow` blocks it for 2 s. SAW_… symbols
 * appear if it sees what `envelope` says.
 */
const rules = `
local function has(word)
  return function(task) return (task:get_header('Subject') or ''):find(word, 1, true) ~= nil end
end
local function addresses(list)
  local found = {}
  for _, each in ipairs(list or {}) do found[#found + 1] = each.addr end
  return table.concat(found, ' ')
end
local function add(name, score, callback)
  rspamd_config:register_symbol({ name = name, score = score, callback = callback })
end
add('OFFER', 6.5, has('offer'))
add('GREY', 4.5, has('grey'))
add('SAW_IP', 0.1, function(task) return task:get_from_ip():to_string() == '2001:db8::7' end)
add('SAW_HELO', 0.1, function(task) return task:get_helo() == 'helo.far.test' end)
add('SAW_HOSTNAME', 0.1, function(task) return task:get_hostname() == 'host.far.test' end)
add('SAW_FROM', 0.1, function(task) return addresses(task:get_from('smtp')) == 'ada@far.test' end)
add('SAW_NOBODY', 0.1, function(task) return addresses(task:get_from('smtp')) == '' end)
add('SAW_RECIPIENTS', 0.1, function(task) return addresses(task:get_recipients('smtp')) == 'a@near.test b@near.test' end)
add('SAW_100', 0.1, function(task) return #(task:get_recipients('smtp') or {}) == 100 end)
add('SAW_QUEUE_ID', 0.1, function(task) return task:get_queue_id() == 'msg_1' end)
add('SAW_MTA', 0.1, function(task) return tostring(task:get_request_header('MTA-Name')) == 'mx.near.test' end)
add('SAW_LARGE', 0.1, function(task) return task:get_size() > 2000000 end)
rspamd_config:register_symbol({ name = 'FORCED', type = 'prefilter', callback = function(task)
  local action = (task:get_header('Subject') or ''):match('^action (.+)$')
  if action then task:set_pre_result(action, 'forced') end
end })
rspamd_config:register_symbol({ name = 'SLOW', type = 'prefilter', callback = function(task)
  if not has('slow')(task) then return end
  local util = require 'rspamd_util'
  local endsAt = util.get_time() + 2
  while util.get_time() < endsAt do end
end })
`

function configuration(folder: string, port: number): string {
  return `
options {
  pidfile = "${folder}/pid"; tempdir = "${folder}"; hs_cache_dir = "${folder}/"; control_socket = "${folder}/control mode=0600";
  filters = "";
  url_tld = "${folder}/tld";
  dns { nameserver = ["127.0.0.1:9:1"]; timeout = 0.1s; retransmits = 1; }
}
lang_detection { languages_disable = true; }
logging { type = "console"; level = "error"; }
actions { reject = 15; add_header = 6; greylist = 4; quarantine = { flags = ["no_threshold"] }; }
lua = "${folder}/rules.lua";
worker "normal" { bind_socket = "127.0.0.1:${port}"; count = 1; max_tasks = 0; }
`
}

/** An Rspamd that is not started yet. With the scope it ends and its folder is removed. */
export async function makeRspamd(scope: Scope): Promise<TestRspamd> {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-rspamd-'))
  const port = await freePort()
  writeFileSync(join(folder, 'tld'), 'test\n')
  writeFileSync(join(folder, 'rules.lua'), rules)
  writeFileSync(join(folder, 'conf'), configuration(folder, port))
  const address = { origin: `http://127.0.0.1:${port}`, password: null }
  let child: ChildProcess | null = null
  const signal = (name: NodeJS.Signals) => process.kill(-child!.pid!, name)
  const kill9 = async () => {
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const gone = once(child, 'exit')
    signal('SIGKILL')
    await gone
  }
  scope.after(async () => {
    await kill9()
    rmSync(folder, { recursive: true, force: true })
  })
  const start = async () => {
    // A start that failed may have left a process, which would hold the port and keep the test file alive.
    await kill9()
    // In a process group of their own, so that the signals reach its processes and no others.
    const args = ['-f', '--insecure', '-c', join(folder, 'conf')]
    child = spawn(program, args, { stdio: 'ignore', detached: true })
    await until('Rspamd to answer', () =>
      fetch(`${address.origin}/ping`).then(
        ({ ok }) => ok,
        () => false,
      ),
    )
  }
  return { address, start, kill9, freeze: () => signal('SIGSTOP'), thaw: () => signal('SIGCONT') }
}

/** A request as it came in. */
export interface Asked {
  /** The request line and the fields. */
  header: string
  body: Buffer
}

/** The fake's behavior on a connection once the request is complete. */
export type Answer = (socket: Socket, asked: Asked) => void

export interface FakeRspamd {
  address: RspamdAddress
  /** Requests to check a mail, so far. */
  asked: Asked[]
  connections(): number
}

/** A server that answers `/ping` while it `lives`, and each check as `answer` does. */
export async function fakeRspamd(
  scope: Scope,
  answer: Answer,
  life: { isDead?: boolean } = {},
): Promise<FakeRspamd> {
  const sockets = new Set<Socket>()
  const asked: Asked[] = []
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => {})
    let received: Buffer = Buffer.alloc(0)
    socket.on('data', (piece) => {
      received = Buffer.concat([received, piece])
      const request = wholeRequest(received)
      if (!request || life.isDead) return
      received = Buffer.alloc(0)
      if (request.header.startsWith('GET /ping ')) return void socket.end(respond('pong\r\n'))
      asked.push(request)
      answer(socket, request)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  scope.after(async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  })
  const { port } = server.address() as AddressInfo
  const address = { origin: `http://127.0.0.1:${port}`, password: null }
  return { address, asked, connections: () => sockets.size }
}

/** An HTTP response in Rspamd's form. */
export function respond(body: string, status = '200 OK'): string {
  const fields = ['Connection: close', 'Server: fake/1', `Content-Length: ${Buffer.byteLength(body)}`]
  return `HTTP/1.1 ${status}\r\n${fields.join('\r\n')}\r\n\r\n${body}`
}

function wholeRequest(received: Buffer): Asked | null {
  const end = received.indexOf('\r\n\r\n')
  if (end < 0) return null
  const header = received.subarray(0, end).toString('latin1')
  const length = Number(/^content-length: (\d+)$/im.exec(header)?.[1] ?? 0)
  const body = received.subarray(end + 4)
  return body.length < length ? null : { header, body }
}
