// Sent mail on the pages: a service, a receiving side with every behavior, and a browser with the delivery timeline.
import type { Api, Inbox } from './api.ts'
import { openPages, type Pages } from './dashboard.ts'
import { type FarSide, startFarSide } from './far-side.ts'
import { makePlace, send, startNode, type TestNode, untilStates } from './node.ts'
import type { Scope } from './until.ts'

export interface Stage {
  far: FarSide
  node: TestNode
  api: Api
  inbox: Inbox
  pages: Pages
}

export async function setStage(t: Scope, options: { slowMs?: number } = {}): Promise<Stage> {
  const far = await startFarSide(t, options)
  const node = await startNode(await makePlace(t), { env: far.env })
  const caller = await node.createCaller()
  const inbox = await caller.api.createInbox()
  return { far, node, api: caller.api, inbox, pages: await openPages(t, node, caller.organizationId) }
}

/** Sends, waits for the recipients' states, and opens the message's timeline. */
export async function openLife(
  { api, inbox, pages }: Stage,
  to: string[],
  ...states: string[]
): Promise<string> {
  const { submission } = await send(api, inbox, to)
  if (states.length > 0) await untilStates(api, submission.id, ...states)
  await pages.open(`/sending/${submission.id}`, 'Test')
  return submission.id
}

/** Waits until the page shows the text. */
export const shows = ({ pages: { page } }: Stage, text: string | RegExp) =>
  page.getByText(text).filter({ visible: true }).first().waitFor()
