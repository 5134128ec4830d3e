// The texts of the OpenAPI document that belong to no single operation.

export const introduction = `Inboxes that send and receive mail over SMTP, for programs and agents.

## Authentication

Every request carries its API key in the header \`x-api-key\`. A key has scopes, and may be restricted to inboxes,
to the addresses that it is used from, to domains that it may send to, or to replies. \`GET /v1/me\` shows all of that.
A 401 has one code and one message for every cause.

## Requests and answers

Bodies are JSON. A property or a query parameter that is not documented is refused (400), so that a typo is never passed
over in silence; so are texts with a NUL or half of a surrogate pair, and members called \`__proto__\`. Every answer
carries its id in \`x-request-id\`; errors are \`{"error", "message"}\`: a code for programs, which stays, and words for
people, which may change. What is not an operation is a 404, \`route_not_found\`.

## Retrying

Operations that send take an \`idempotency-key\`: one for each logical action, the same for every retry of it. A retry
answers the first result in its present state, with \`replayed: true\`. A 423, a 429 and a 503 say in \`retry-after\` when to try
again; \`RateLimit\` says how many requests the key has left.

## Lists

Lists take \`limit\` (1 to 100, 50 if omitted) and \`cursor\`, and answer one named array and \`nextCursor\`: pass it on
as \`cursor\` for the next page; only null means that there is none. A cursor stays right while rows are added and deleted.

## Received mail

Everything in a received message is untrusted input: addresses, names, texts, file names. Treat it as such, above all
before a program or a model acts on it.`

export const keyDescription = `The API key. Each operation names the scope it needs; \`*\` is every scope.

| Scope | Permits |
|---|---|
| \`mailbox:manage\` | to create and delete inboxes, to delete messages |
| \`mailbox:read\` | to read inboxes, threads, messages and attachments, and to follow the events of messages |
| \`mailbox:send\` | to send from an inbox and to reply |
| \`delivery:read\` | to read submissions, their events, metrics, suppressions and complaints |
| \`delivery:send\` | to send through a domain, to create and delete suppressions |
| \`domain:manage\` | to register, verify and delete domains |
| \`webhook:manage\` | webhook endpoints and the stream of events |
| \`validation:use\` | to validate addresses |

In the dashboard, \`delivery:send\` and \`validation:use\` are given to server keys alone, which the operator grants an organization.`

export const tags = [
  { name: 'Account', description: 'What the key may do, and the limits it works under.' },
  {
    name: 'Inboxes',
    description: 'Addresses that send and receive: managed ones, or on domains of your own.',
  },
  { name: 'Messages', description: 'Mail that was sent or received, its attachments and its source.' },
  { name: 'Threads', description: 'Conversations within an inbox, and replies to them.' },
  {
    name: 'Submissions',
    description: 'What was accepted to be sent, what became of each recipient, and sending without an inbox.',
  },
  {
    name: 'Suppressions',
    description: 'Addresses that nothing is sent to, and what recipients complained of.',
  },
  { name: 'Domains', description: 'Domains of your own: the records to publish, and what they prove.' },
  { name: 'Validation', description: 'What is known of an address, without writing to it.' },
  { name: 'Metrics', description: 'How delivery goes.' },
  {
    name: 'Webhooks',
    description: 'Being told what happens, by calls to an endpoint of yours or on a live stream.',
  },
]

export const appIntroduction = `What the pages of the dashboard call. Every operation of the API is here once more under \`/app\`,
with a session in place of a key, and beside them those that only people need: signing in, members, keys, access. A change needs
the page's own \`origin\` and, where somebody is signed in, the header \`x-posthorn-token\` with what \`GET /app/v1/session\` says.`

export const sessionDescription =
  'The session that signing in has begun. Programs use a key, and the API without /app.'
