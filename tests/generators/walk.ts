// The calls that a program makes with each generated client, and the answers that it must get.
import assert from 'node:assert/strict'

interface Message {
  id: string
  threadId: string
  direction: 'inbound' | 'outbound'
  text: string
}

interface Acceptance {
  message: Message
  submission: { status: 'pending' | 'delivered' | 'partially_delivered' | 'failed' }
}

/** The operations of one generated client. Their types come from the generated ones, which must be as exact as these. */
export interface Client {
  readScopes(): Promise<string[]>
  createInbox(displayName: string): Promise<{ id: string; address: string; displayName: string | null }>
  sendMessage(inboxId: string, to: string, idempotencyKey: string): Promise<Acceptance>
  /** The first message of the inbox, as soon as it is there. */
  waitForMessages(inboxId: string): Promise<Message[]>
  getMessage(messageId: string): Promise<Message>
  getSource(messageId: string): Promise<string>
  getThread(threadId: string): Promise<Message[]>
  reply(threadId: string, targetMessageId: string, idempotencyKey: string): Promise<Acceptance>
  listInboxes(cursor: string | undefined): Promise<{ inboxes: { id: string }[]; nextCursor: string | null }>
  validate(email: string): Promise<{ verdict: string; reason: string }>
  suppress(email: string): Promise<{ email: string; reason: string }>
  /** The only operation that deletes by its body. */
  deleteSuppression(email: string): Promise<void>
  deleteInbox(inboxId: string): Promise<void>
  /** Asks for an inbox that does not exist. Its code has a type, so that a program can branch on it. */
  getMissingInbox(inboxId: string): Promise<{ status: number; code: 'not_found'; message: string }>
}

/** Makes every call. Throws at the first wrong answer. */
export async function walk(client: Client): Promise<void> {
  assert.deepEqual(await client.readScopes(), ['*'])
  const [ada, ben] = [await client.createInbox('Ada'), await client.createInbox('Ben')]
  assert.deepEqual([ada.displayName, ben.displayName], ['Ada', 'Ben'])

  const sent = await client.sendMessage(ada.id, ben.address, 'lunch-on-friday')
  assert.equal(sent.message.direction, 'outbound')
  const again = await client.sendMessage(ada.id, ben.address, 'lunch-on-friday')
  assert.equal(again.message.id, sent.message.id)
  const [arrived] = await client.waitForMessages(ben.id)
  assert.ok(arrived)
  assert.equal(arrived.direction, 'inbound')
  assert.deepEqual(await client.getMessage(arrived.id), arrived)
  assert.match(await client.getSource(arrived.id), /^Subject: Lunch on Friday\?\r$/m)

  const replied = await client.reply(arrived.threadId, arrived.id, 'lunch-on-friday:yes')
  assert.equal(replied.message.text, 'Yes.')
  const thread = await client.getThread(arrived.threadId)
  assert.deepEqual(thread.map(({ direction }) => direction).sort(), ['inbound', 'outbound'])

  const seen: string[] = []
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page = await client.listInboxes(cursor)
    assert.equal(page.inboxes.length, 1)
    seen.push(page.inboxes[0]!.id)
    cursor = page.nextCursor
  }
  assert.deepEqual(seen, [ben.id, ada.id])

  const { verdict, reason } = await client.validate('ada@gone.test')
  assert.deepEqual([verdict, reason], ['undeliverable', 'domain_not_found'])
  assert.equal((await client.suppress('nobody@far.test')).reason, 'manual')
  await client.deleteSuppression('nobody@far.test')

  await client.deleteInbox(ada.id)
  const { status, code, message } = await client.getMissingInbox(ada.id)
  assert.deepEqual([status, code, message === ''], [404, 'not_found', false])
  console.log('every answer is right')
}

/** The arguments of the program: the address of the service, and a key. */
export function readArguments(): { baseUrl: string; key: string } {
  const [baseUrl, key] = process.argv.slice(2)
  if (!baseUrl || !key) throw new Error('usage: PROGRAM BASE_URL API_KEY')
  return { baseUrl, key }
}
