// Hostile HTML and all HTML of the published mails, received and opened: nothing runs, loads, or leaves its frame.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import nodemailer from 'nodemailer'
import { parseMail } from '../../src/mail/read/parse.ts'
import { chromiumMissing } from '../support/chromium.ts'
import { readCorpora } from '../support/corpora.ts'
import { openPages, type Pages } from '../support/dashboard.ts'
import { type HostileHtml, hostileHtml } from '../support/hostile-html.ts'
import { makePlace, startNode, type TestNode } from '../support/node.ts'
import { type Scope, until } from '../support/until.ts'

/** The number of messages that are open in one page at the same time. */
const framesAtOnce = 40
const skip = chromiumMissing ? `SKIPPED: ${chromiumMissing}` : false

test('check 65: hostile HTML, and all HTML of the published mails, has no effect when it is read', {
  skip,
}, async (t) => {
  const beganMs = performance.now()
  const node = await startNode(await makePlace(t), { env: { POSTHORN_DELIVERY: 'capture' } })
  const far = await startFar(t)
  const hostile = hostileHtml(far.url)
  const published = publishedHtml()
  const payloads = hostile.reduce((sum, one) => sum + one.payloads, 0)
  assert.ok(payloads >= 300)
  if (published.length === 0) t.diagnostic('SKIPPED: the HTML of the published mails, which are not there')
  t.diagnostic(
    `${payloads} payloads in ${hostile.length} mails, ${published.length} published mails with HTML`,
  )
  const { organizationId, api } = await node.createCaller()
  const inbox = await api.createInbox()
  const groups = await receiveInGroups(node, inbox.address, [...hostile, ...published])
  const threads = await until('all threads to be there', async () => {
    const found = await api.want<{ threads: { id: string; messageCount: number }[] }>(
      `/v1/inboxes/${inbox.id}/threads?limit=100`,
    )
    const count = found.threads.reduce((sum, thread) => sum + thread.messageCount, 0)
    return count === groups.length ? found.threads : null
  })

  t.diagnostic(`received after ${Math.round(performance.now() - beganMs)} ms`)
  const pages = await openPages(t, node, organizationId)
  const seen = await watch(pages)
  let shown = 0
  for (const { id, messageCount } of threads) shown += await openThread(pages, inbox.id, id, messageCount)
  t.diagnostic(`${shown} frames were shown after ${Math.round(performance.now() - beganMs)} ms`)
  assert.ok(shown >= groups.length * 0.9, 'what was received was shown as HTML')
  assert.deepEqual(
    { ...seen, requests: [...seen.requests], fetched: far.requests, complaints: pages.complaints },
    { ...nothing, fetched: [], complaints: [] },
  )
  assert.equal(pages.context.pages().length, 1, 'no window was opened')
})

/** A server elsewhere, which must never get a request. */
async function startFar(scope: Scope): Promise<{ url: string; requests: string[] }> {
  const requests: string[] = []
  const server = createServer((request, response) => {
    requests.push(request.url ?? '')
    response.end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  scope.after(() => new Promise<void>((resolve) => server.close(() => resolve())))
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests }
}

function publishedHtml(): HostileHtml[] {
  const mails = [...readCorpora().values()].flat()
  const htmls = new Map(mails.map(({ name, raw }) => [parseMail(raw).html ?? '', name]))
  htmls.delete('')
  return [...htmls].map(([html, name]) => ({ name, html, payloads: 1 }))
}

/** Receives each as a mail of its own, in threads of `framesAtOnce`. Returns the Message-IDs. */
async function receiveInGroups(node: TestNode, to: string, all: readonly HostileHtml[]): Promise<string[]> {
  const mailer = nodemailer.createTransport({
    host: node.smtp.host,
    port: node.smtp.port,
    pool: true,
    maxConnections: 4,
    maxMessages: 1_000,
    tls: { rejectUnauthorized: false },
  })
  const idOf = (at: number) => `<hostile-${at}@far.test>`
  const receive = async ({ name, html }: HostileHtml, at: number) => {
    const first = at - (at % framesAtOnce)
    const parent = at === first ? {} : { inReplyTo: idOf(first), references: idOf(first) }
    // The letter in front makes a mail whose HTML is only a comment count as HTML.
    const mail = { from: 'a@far.test', to, subject: `Group ${first}`, messageId: idOf(at), ...parent }
    await mailer.sendMail({ ...mail, text: name, html })
    return idOf(at)
  }
  const ids: string[] = []
  // The first mail of a thread must be filed before its replies, or each reply begins a thread of its own.
  for (const [at, one] of all.entries()) if (at % framesAtOnce === 0) ids.push(await receive(one, at))
  const others = [...all.entries()].filter(([at]) => at % framesAtOnce !== 0)
  ids.push(...(await Promise.all(others.map(([at, one]) => receive(one, at)))))
  mailer.close()
  return ids
}

const leftoversInFrames = readFileSync(new URL('../support/frame-leftovers.js', import.meta.url), 'utf8')
const nothing = {
  ran: [],
  dialogs: [],
  violations: [],
  navigations: [],
  leftovers: [],
  requests: [] as string[],
}

interface Seen {
  ran: string[]
  dialogs: string[]
  violations: string[]
  navigations: string[]
  /** Elements that a frame must not contain. */
  leftovers: string[]
  /** Requests to any host except the service. */
  requests: Set<string>
}

async function watch({ page, context, base }: Pages): Promise<Seen> {
  const seen: Seen = {
    ran: [],
    dialogs: [],
    violations: [],
    navigations: [],
    leftovers: [],
    requests: new Set(),
  }
  await context.exposeBinding('hostile', ({ frame }) => void seen.ran.push(frame.url()))
  await context.exposeBinding('violated', (_source, what: string) => void seen.violations.push(what))
  await context.addInitScript(
    `addEventListener('securitypolicyviolation', (event) => violated(event.violatedDirective + ' ' + event.blockedURI))`,
  )
  page.on('dialog', (dialog) => {
    seen.dialogs.push(dialog.message())
    void dialog.dismiss()
  })
  page.on('console', (message) => {
    if (message.text().includes('Content Security Policy')) seen.violations.push(message.text())
  })
  page.on('framenavigated', (frame) => {
    const url = frame.url()
    const isOwn = frame.parentFrame() === null ? url.startsWith(`${base}/mail`) : url === `${base}/app/frame`
    if (!isOwn && url !== 'about:blank') seen.navigations.push(url)
  })
  context.on('request', (request) => {
    const url = request.url()
    if (!url.startsWith(`${base}/`) && !url.startsWith('data:')) seen.requests.add(url)
  })
  const look = async () => void seen.leftovers.push(...(await page.evaluate<string[]>(leftoversInFrames)))
  looks.set(page, look)
  return seen
}

const looks = new WeakMap<object, () => Promise<void>>()

/** Returns how many messages were shown as HTML. */
async function openThread(
  { page }: Pages,
  inboxId: string,
  threadId: string,
  count: number,
): Promise<number> {
  await page.goto(`/mail/${inboxId}/${threadId}`)
  if (count > 1) await page.getByRole('button', { name: 'Expand all' }).click()
  await until('the messages to be shown', () => page.evaluate<boolean>(isShown(count)), { everyMs: 50 })
  await looks.get(page)!()
  return await page.locator('iframe[data-shown]').count()
}

/** Evaluated in the page: whether `count` messages are open and every HTML message is shown. */
const isShown = (count: number) => `
  document.querySelectorAll('article [data-head][aria-expanded=true]').length === ${count} &&
  document.querySelector('[aria-label="Loading…"]') === null &&
  [...document.querySelectorAll('article')].every((article) => article.querySelector('fieldset + *, fieldset ~ *')) &&
  [...document.querySelectorAll('iframe')].every((frame) => frame.dataset.shown !== undefined)`
