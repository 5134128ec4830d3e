// Sends every example request of the document, unchanged except for ids, and expects success in the documented form.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { Agent, fetch } from 'undici'
import type { Domain } from '../support/customer-domain.ts'
import { judgeOf, type Operation, operationsOf, readDocument } from './document.ts'
import { setFurnishedStage } from './furnish.ts'
import { nextKey } from './sending.ts'

// Close the client's connections before the service waits for them: a client cut off from the stream reconnects by itself.
const agent = new Agent()
after(() => agent.destroy())
const furnisher = await setFurnishedStage({ after })
const { stage } = furnisher
const document = await readDocument(stage.base)

/** Creates what an example needs: existing ids, and an address on a proved domain. */
async function furnish(operationId: string) {
  const caller = await furnisher.createCaller()
  const inbox = await furnisher.addInbox(caller)
  const isReceived = [
    ...['getMessageSource', 'getMessageHeaders', 'downloadAttachment', 'replyToThread'],
  ].includes(operationId)
  const { messageId } = isReceived ? inbox.received : inbox.sent
  const domainId =
    operationId === 'send' ? await furnisher.addProvedDomain(caller) : await furnisher.addDomain(caller)
  const { domain } = await caller.api.want<Domain>(`/v1/domains/${domainId}`)
  if (operationId === 'deleteSuppression')
    await caller.api.want('/v1/suppressions', {
      method: 'POST',
      body: { email: 'nobody@example.com' },
      status: 201,
    })
  const ids: Record<string, string> = {
    inboxId: inbox.inboxId,
    threadId: inbox.threadId,
    messageId,
    targetMessageId: messageId,
    domainId,
    attachmentId: inbox.received.attachmentId,
    submissionId: inbox.sent.submissionId,
    ...(await furnisher.addWebhook(caller)),
  }
  return { secret: caller.secret, ids, domain }
}

type Furnished = Awaited<ReturnType<typeof furnish>>

/** Fills real ids and addresses into the example. */
function fill(value: unknown, { ids, domain }: Furnished): unknown {
  if (value === null || typeof value !== 'object') return value
  const members = Object.entries(value).map(([name, member]) => [name, ids[name] ?? member])
  const filled: Record<string, unknown> = Object.fromEntries(members)
  if ('from' in filled) filled['from'] = { ...(filled['from'] as object), email: `tables@${domain}` }
  return filled
}

function request(path: string, { parameters = [] }: Operation, { ids, secret }: Furnished) {
  let target = path
  const query = new URLSearchParams()
  const headers: Record<string, string> = { 'x-api-key': secret }
  for (const { name, in: place, example, schema } of parameters) {
    const value = ids[name] ?? (name === 'idempotency-key' ? nextKey() : (example ?? schema.enum?.[0]))
    if (value === undefined) continue
    if (place === 'path') target = target.replace(`{${name}}`, encodeURIComponent(String(value)))
    else if (place === 'query') query.set(name, String(value))
    else headers[name] = String(value)
  }
  return { url: `${stage.base}${target}?${query}`, headers }
}

for (const { path, method, operation } of operationsOf(document)) {
  const examples = operation.requestBody?.content['application/json']?.examples ?? {
    'no body': { value: undefined },
  }
  const [status, success] = Object.entries(operation.responses).find(([code]) => code < '300')!
  for (const [name, { value }] of Object.entries(examples))
    test(`check 71: ${method} ${path}, ${name}, is ${status}`, async () => {
      const furnished = await furnish(operation.operationId)
      const { url, headers } = request(path, operation, furnished)
      const body = value === undefined ? null : JSON.stringify(fill(value, furnished))
      const controller = new AbortController()
      const response = await fetch(url, {
        method,
        body,
        signal: controller.signal,
        dispatcher: agent,
        headers: body === null ? headers : { ...headers, 'content-type': 'application/json' },
      })
      const [type, media] = Object.entries(success.content ?? {})[0] ?? []
      // The stream never ends, so its body is not read.
      const text = type === 'text/event-stream' ? '' : await response.text()
      controller.abort()
      assert.equal(response.status, Number(status), text)
      assert.equal(response.headers.get('content-type')?.split(';')[0], type)
      for (const header of Object.keys(success.headers ?? {})) assert.ok(response.headers.has(header), header)
      if (type !== 'application/json') return
      const [isRight, errors] = judgeOf(document, media!.schema).Errors(JSON.parse(text))
      assert.ok(isRight, JSON.stringify(errors))
    })
}
