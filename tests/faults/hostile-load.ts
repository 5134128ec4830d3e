// A load that wants memory: large mail and requests at once, mails of many parts, deep JSON, and clients that do not read.
import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import type { Api, Inbox } from '../support/api.ts'
import type { Posthorn } from '../support/service.ts'
import { sendMail } from '../support/smtp-sender.ts'

interface Options {
  posthorn: Posthorn
  api: Api
  /** The key of `api`. */
  secret: string
  inbox: Inbox
}

const megabyte = 1 << 20
const line = `${'All that is sent wants memory. '.repeat(2)}\r\n`
const large = line.repeat((10 * megabyte) / line.length)
const parts = '--b\r\nContent-Type: text/plain\r\n\r\nx\r\n'.repeat(60_000)
const html = `<html>${'<div><table><tr><td><b>'.repeat(60_000)}`
const attachment = Buffer.alloc(5 * megabyte, 'posthorn').toString('base64')
const deep = `{"to":${'['.repeat(4 * megabyte)}`

/** The bodies of mails, each with its type. */
const mails = [
  { type: 'text/plain', body: large },
  { type: 'multipart/mixed; boundary=b', body: parts },
  { type: 'text/html', body: html },
] as const

/** Runs until `stop`. Each acknowledged mail is in `acknowledged`. */
export class HostileLoad {
  /** Message-IDs with 250. */
  readonly acknowledged: string[] = []
  /** Requests and mails by their answer. */
  readonly answers = new Map<string, number>()
  readonly #options: Options
  readonly #workers: Promise<void>[]
  #isRunning = true
  #number = 0

  constructor(options: Options) {
    this.#options = options
    const each: [number, () => Promise<void>][] = [
      [12, () => this.#mail()],
      [6, () => this.#post(JSON.stringify(this.#send()))],
      [2, () => this.#post(deep)],
      [30, () => this.#readNothing()],
      [60, () => this.#waitInMail()],
    ]
    this.#workers = each.flatMap(([count, one]) => Array.from({ length: count }, () => this.#repeat(one)))
  }

  async stop(): Promise<void> {
    this.#isRunning = false
    await Promise.all(this.#workers)
  }

  async #repeat(one: () => Promise<void>): Promise<void> {
    while (this.#isRunning) {
      // The service may be killed at any moment.
      await one().catch(() => this.#count('no answer'))
      await pause(50)
    }
  }

  #count(answer: string): void {
    this.answers.set(answer, (this.answers.get(answer) ?? 0) + 1)
  }

  async #mail(): Promise<void> {
    const number = this.#number++
    const { type, body } = mails[number % mails.length]!
    const { smtp } = this.#options.posthorn
    const { address } = this.#options.inbox
    const id = `<hostile-${number}@sender.test>`
    const head = `From: s@sender.test\r\nTo: ${address}\r\nMessage-ID: ${id}\r\nContent-Type: ${type}\r\n\r\n`
    const raw = Buffer.from(head + body)
    const { outcome, reply } = await sendMail(smtp, { from: 's@sender.test', to: address, raw })
    if (outcome === 'accepted') this.acknowledged.push(id)
    this.#count(`SMTP ${outcome === 'lost' ? outcome : reply.slice(0, 3)}`)
  }

  #send(): object {
    const content = { filename: 'a.bin', contentType: 'application/octet-stream', content: attachment }
    return { to: [{ email: 'a@far1.test' }], subject: 'Large', text: 'Large.', attachments: [content] }
  }

  async #post(body: string): Promise<void> {
    const { posthorn, inbox, secret } = this.#options
    const answer = await fetch(`${posthorn.http}/v1/inboxes/${inbox.id}/messages`, {
      method: 'POST',
      headers: {
        'x-api-key': secret,
        'content-type': 'application/json',
        'idempotency-key': `hostile-${this.#number++}-key`,
      },
      body,
    })
    await answer.arrayBuffer()
    this.#count(`HTTP ${answer.status}`)
  }

  /** Asks for a page of messages and does not read it. */
  async #readNothing(): Promise<void> {
    const { posthorn, inbox, secret } = this.#options
    const { hostname, port } = new URL(posthorn.http)
    const socket = connect(Number(port), hostname).pause()
    socket.on('error', () => {})
    await once(socket, 'connect')
    const path = `/v1/inboxes/${inbox.id}/messages?limit=100&include=text`
    socket.write(`GET ${path} HTTP/1.1\r\nHost: ${hostname}\r\nX-API-Key: ${secret}\r\n\r\n`.repeat(10))
    await pause(2_000)
    socket.destroy()
    this.#count('HTTP not read')
  }

  /** Sends a megabyte of a mail, and then nothing. */
  async #waitInMail(): Promise<void> {
    const { posthorn, inbox } = this.#options
    const socket = connect(posthorn.smtp.port, posthorn.smtp.host).resume()
    socket.on('error', () => {})
    await once(socket, 'connect')
    socket.write(`EHLO a.test\r\nMAIL FROM:<s@sender.test>\r\nRCPT TO:<${inbox.address}>\r\nDATA\r\n`)
    await pause(500)
    socket.write(large.slice(0, megabyte))
    await pause(3_000)
    socket.destroy()
    this.#count('SMTP cut')
  }
}
