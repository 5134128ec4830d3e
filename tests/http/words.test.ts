// Tests the messages of a 400: the wrong value and the expected one, in plain words.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { ask, setStage } from './stage.ts'

const stage = await setStage({ after })
const { secret, api } = await stage.createCaller()
const inbox = await api.createInbox('words')

const mail = { to: [{ email: 'ada@far.test' }], subject: 'Hello', text: 'There' }
const messages = `POST /v1/inboxes/${inbox.id}/messages`
const to = (count: number) => Array.from({ length: count }, (_, n) => ({ email: `a${n}@far.test` }))

const cases: [operation: string, body: unknown, message: string][] = [
  ['GET /v1/inboxes?limit=0', undefined, '/limit must be a whole number from 1 to 100'],
  ['GET /v1/inboxes?limit=ten', undefined, '/limit must be a whole number from 1 to 100'],
  ['GET /v1/inboxes?limit=1&limit=2', undefined, '/limit must be a whole number from 1 to 100'],
  ['GET /v1/inboxes?limits=1', undefined, '/limits is unknown (known: limit, cursor, domainId, q)'],
  ['GET /v1/metrics/delivery?hours=721', undefined, '/hours must be a whole number from 1 to 720'],
  ['GET /v1/metrics/delivery?hours=1.5', undefined, '/hours must be a whole number from 1 to 720'],
  [
    'GET /v1/submissions?status=lost',
    undefined,
    '/status must be one of pending, delivered, partially_delivered, failed',
  ],
  ['GET /v1/submissions?recipient=x', undefined, '/recipient must be an email address'],
  [
    'GET /v1/submissions?since=2026-11-21T09:00:00',
    undefined,
    '/since must be a time with a time zone, such as 2026-11-21T09:00:00Z',
  ],
  ['GET /v1/submissions/1', undefined, '/submissionId must be a UUID'],
  [
    'GET /v1/inboxes/inb_1',
    undefined,
    '/inboxId must be an inbox id: inb_ and 24 lowercase hexadecimal digits',
  ],
  ['GET /v1/me?limit=1', undefined, '/limit is unknown'],
  [messages, [], 'the body must be an object'],
  [messages, { ...mail, subject: undefined }, '/subject is required'],
  [messages, { ...mail, text: undefined }, '/text or /html is required'],
  [messages, { ...mail, text: 7 }, '/text must be a string'],
  [messages, { ...mail, html: null }, '/html must be a string'],
  [messages, { ...mail, subject: 'S'.repeat(999) }, '/subject must be 1 to 998 characters long'],
  [
    messages,
    { ...mail, subject: ' ' },
    '/subject must be one line without control characters and with at least one visible character',
  ],
  [messages, { ...mail, to: 'ada@far.test' }, '/to must be a list, such as [{"email": "ada@example.com"}]'],
  [
    messages,
    { ...mail, attachments: {} },
    '/attachments must be a list, such as [{"filename": "terms.txt", "contentType": "text/plain", "content": "VGVybXMu"}]',
  ],
  [messages, { ...mail, to: [] }, '/to must have 1 to 1000 entries'],
  [messages, { ...mail, to: to(1001) }, '/to must have 1 to 1000 entries'],
  [messages, { ...mail, cc: to(1001) }, '/cc must have at most 1000 entries'],
  [messages, { ...mail, to: [{ name: 'Ada' }] }, '/to/0/email is required'],
  // F26: forms that other services accept.
  [
    messages,
    { ...mail, to: ['ada@far.test'] },
    '/to/0 must be an object, such as {"email": "ada@example.com"}',
  ],
  [
    messages,
    { ...mail, replyTo: 'ada@far.test' },
    '/replyTo must be an object, such as {"email": "ada@example.com"}',
  ],
  [
    'POST /v1/send',
    { from: { email: 'a@far.test' }, ...mail, attachments: [], cc: [] },
    '/attachments is not accepted here, only by POST /v1/inboxes/{inboxId}/messages; /cc is not accepted here, only by POST /v1/inboxes/{inboxId}/messages',
  ],
  // F28: the message reports up to three errors at once.
  [
    messages,
    { to: ['ada@far.test'], subject: 5, text: 'There' },
    '/to/0 must be an object, such as {"email": "ada@example.com"}; /subject must be one line without control characters and with at least one visible character',
  ],
  [messages, {}, '/text or /html is required; /to is required; /subject is required'],
  [
    messages,
    { ...mail, from: 'me', reply_to: 'you', text: undefined, html: 7 },
    '/html must be a string; /from is unknown; /reply_to is unknown (known: to, cc, bcc, replyTo, subject, text, html, attachments, metadata, purpose)',
  ],
  [
    messages,
    { ...mail, to: [1, { email: 'ada' }, {}, 'b'], purpose: 'spam' },
    '/to/0 must be an object, such as {"email": "ada@example.com"}; /to/1/email must be an email address; /to/2/email is required; and more',
  ],
  [
    messages,
    { ...mail, metadata: { 'a b': 1, 'c d': {}, e: [] } },
    '/metadata/a b must have a name of 1 to 40 characters A-Z, a-z, 0-9, _ . : -; /metadata/c d must have a name of 1 to 40 characters A-Z, a-z, 0-9, _ . : -; /metadata/e must be a string, a number from -9007199254740991 to 9007199254740991, true or false or null',
  ],
  [
    'GET /v1/inboxes?limit=0&limits=1',
    undefined,
    '/limits is unknown (known: limit, cursor, domainId, q); /limit must be a whole number from 1 to 100',
  ],
  // For a body with very many values, the message reports only the first error.
  [
    messages,
    { ...mail, to: Array.from({ length: 900 }, () => ({ email: 'x' })), subject: 5 },
    '/to/0/email must be an email address',
  ],
  [
    messages,
    { ...mail, cc: ['a'], text: 'x'.repeat(300_000) },
    '/cc/0 must be an object, such as {"email": "ada@example.com"}',
  ],
  [messages, { ...mail, to: [{ email: 'ada' }] }, '/to/0/email must be an email address'],
  [messages, { ...mail, purpose: 'spam' }, '/purpose must be one of transactional, marketing'],
  [
    messages,
    { ...mail, metadata: { a: {} } },
    '/metadata/a must be a string, a number from -9007199254740991 to 9007199254740991, true or false or null',
  ],
  [
    messages,
    { ...mail, metadata: { 'a b': 1 } },
    '/metadata/a b must have a name of 1 to 40 characters A-Z, a-z, 0-9, _ . : -',
  ],
  [
    messages,
    { ...mail, metadata: { a: 'x'.repeat(501) } },
    '/metadata/a must be at most 500 characters long',
  ],
  [
    messages,
    { ...mail, metadata: Object.fromEntries(to(51).map(({ email }) => [email.replace('@', '.'), 1])) },
    '/metadata must have at most 50 entries',
  ],
  ['POST /v1/inboxes', { displayName: '' }, '/displayName must be 1 to 200 characters long'],
  [
    'POST /v1/inboxes',
    { display_name: 'Ada' },
    '/display_name is unknown (known: localPart, displayName, domainId)',
  ],
  ['POST /v1/validate', { email: 'nonsense' }, '/email must have the form of an email address'],
  [
    'POST /v1/validate/bulk',
    { emails: 'ada@far.test' },
    '/emails must be a list, such as ["ada@example.com"]',
  ],
  ['POST /v1/validate/bulk', { emails: [] }, '/emails must have 1 to 100 entries'],
  [
    'POST /v1/webhooks',
    { url: 'https://far.test/', eventTypes: ['message.received', 'message.received'] },
    '/eventTypes must not have duplicate entries',
  ],
  [
    'POST /v1/webhooks',
    { url: 'https://far.test/', eventTypes: 'all' },
    '/eventTypes must be a list or null, such as ["message.received"]',
  ],
]

for (const [operation, body, message] of cases)
  test(`check 71: ${operation.split(/[/ ?]/).slice(0, 4).join(' ')}: ${message}`, async () => {
    const [method, path] = operation.split(' ') as [string, string]
    const headers = { 'content-type': 'application/json', 'idempotency-key': 'words-of-a-400' }
    const answer = await ask(stage, method, path, {
      secret,
      headers: body === undefined ? {} : headers,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    assert.deepEqual([answer.status, answer.body.error], [400, 'invalid_request'])
    assert.equal(answer.body.message, message)
  })
