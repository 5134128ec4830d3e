// The mail page in a real browser: first view on a slow CPU, and scrolling a list of 100,000 threads against one of 100.
import { readFileSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { chromiumMissing } from '../../tests/support/chromium.ts'
import { openPages, type Pages } from '../../tests/support/dashboard.ts'
import { makePlace, startNode, urlOf } from '../../tests/support/node.ts'
import { type Scope, until } from '../../tests/support/until.ts'
import { enter, type Plan, runCase } from '../plan.ts'
import type { Sample } from '../rounds.ts'

const seed = readFileSync(new URL('dashboard-seed.sql', import.meta.url), 'utf8')
/** Simulates a phone some years old. */
const cpuSlowdown = 4
const scrollPxPerSecond = 10_000

interface Stage extends Pages {
  path: string
  /** A window that has read all threads. */
  list: Page
  threads: number
}

export async function benchDashboard(scope: Scope, plan: Plan): Promise<void> {
  if (chromiumMissing) return plan.print(`dashboard: ${chromiumMissing}\n`)
  const [many, few] = plan.extent === 'quick' ? [1_000, 100] : [100_000, 100]
  const entrants = []
  for (const threads of [many, few])
    entrants.push(await enter(`${threads.toLocaleString('en')} threads`, () => startStage(scope, threads)))
  await runCase(plan, 'the mail page', entrants, (stage) => async () => ({
    ...(await measureFirstView(stage)),
    ...(await measureScroll(stage, plan)),
  }))
}

async function startStage(scope: Scope, threads: number): Promise<Stage> {
  const place = await makePlace(scope)
  const node = await startNode(place, { env: { POSTHORN_DELIVERY: 'capture' } })
  const { organizationId, api } = await node.createCaller()
  const inbox = await api.createInbox()
  const { connection } = place
  const { Client } = (await import('pg')).default
  const session = new Client({ connectionString: urlOf(connection) })
  await session.connect()
  const values = { threads, organization: organizationId, inbox: inbox.id, address: inbox.address }
  for (const [name, value] of Object.entries(values))
    await session.query('select set_config($1, $2, false)', [`bench.${name}`, `${value}`])
  await session.query(seed)
  await session.query('analyze')
  await session.end()
  const pages = await openPages(scope, node, organizationId)
  const path = `/mail/${inbox.id}`
  const list = await pages.context.newPage()
  await list.goto(path)
  await list.locator('[data-thread]').first().waitFor()
  await until(
    'all threads to be read',
    () => list.evaluate<boolean>(`${toEnd}; list.scrollHeight >= ${threads} * 80`),
    { timeoutMs: 300_000, everyMs: 5 },
  )
  return { ...pages, path, list, threads }
}

const findList = `const list = document.querySelector('[data-thread]').closest('ul').parentElement`
const toEnd = `${findList}; list.scrollTop = list.scrollHeight`

/** Opens a window with an empty cache. Measures what it fetches and when the first threads are painted. */
async function measureFirstView({ context, path }: Stage): Promise<Sample> {
  const page = await context.newPage()
  const devTools = await context.newCDPSession(page)
  const ofAssets = new Set<string>()
  const bytes = { all: 0, assets: 0 }
  devTools.on('Network.requestWillBeSent', ({ requestId, request }) => {
    if (new URL(request.url).pathname.startsWith('/assets/')) ofAssets.add(requestId)
  })
  devTools.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => {
    bytes.all += encodedDataLength
    if (ofAssets.has(requestId)) bytes.assets += encodedDataLength
  })
  await devTools.send('Network.enable')
  await devTools.send('Network.setCacheDisabled', { cacheDisabled: true })
  await devTools.send('Emulation.setCPUThrottlingRate', { rate: cpuSlowdown })
  await page.addInitScript(`new MutationObserver((_changes, observer) => {
    if (!document.querySelector('[data-thread]')) return
    observer.disconnect()
    requestAnimationFrame(() => setTimeout(() => (globalThis.shownMs = performance.now())))
  }).observe(document, { subtree: true, childList: true })`)
  await page.goto(path)
  const shownMs = await until('the first threads', () => page.evaluate<number>('globalThis.shownMs ?? 0'))
  const sample = {
    'first view, scripts and styles, kB': bytes.assets / 1000,
    'first view, all with headers, kB': bytes.all / 1000,
    'first view, ms, CPU slowed 4 times': shownMs,
  }
  await page.close()
  return sample
}

async function measureScroll({ list }: Stage, { targetMs }: Plan): Promise<Sample> {
  await list.bringToFront()
  const frames = await list.evaluate<number[]>(`new Promise((done) => {
    ${findList}
    list.scrollTop = 0
    const frames = []
    const begun = performance.now()
    const step = (now) => {
      frames.push(now)
      const at = ((now - begun) / 1000) * ${scrollPxPerSecond}
      list.scrollTop = at % Math.max(1, list.scrollHeight - list.clientHeight)
      if (now - begun < ${targetMs}) requestAnimationFrame(step)
      else done(frames)
    }
    requestAnimationFrame(step)
  })`)
  const gaps = frames.slice(1).map((at, index) => at - frames[index]!)
  const sorted = gaps.toSorted((left, right) => left - right)
  return {
    'scrolling, frames/s': gaps.length / ((frames.at(-1)! - frames[0]!) / 1000),
    'scrolling, slowest frame of 100, ms': sorted[Math.floor(sorted.length * 0.99)]!,
  }
}
