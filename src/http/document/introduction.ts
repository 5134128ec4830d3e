// The texts of the OpenAPI document that belong to no single operation.

export const introduction = `Inboxes that send and receive mail over SMTP, for programs and agents.

## Authentication

Send the API key of every request in the header \`x-api-key\`. A key has scopes. It can be restricted to inboxes, to
caller IP addresses, to recipient domains, or to replies. \`GET /v1/me\` shows its scopes and restrictions. A 401 has
the same code and message for every cause.

## Requests and responses

Bodies are JSON. Unknown properties and query parameters are refused (400), so that a typo is never ignored. Texts with a
NUL or a lone surrogate, and members named \`__proto__\`, are refused as well. Every response has its request id in
\`x-request-id\`. Errors are \`{"error", "message"}\`: a stable code for programs, and a text for people, which may
change. An unknown path or method returns 404 \`route_not_found\`.

## Retrying

Operations that send take an \`idempotency-key\`: a new key for each logical action, the same key for its retries. A
retry returns the first result in its current state, with \`replayed: true\`. A 423, 429 or 503 has the seconds to wait
in \`retry-after\`. \`RateLimit\` has the number of requests that the key has left.

## Lists

Lists take \`limit\` (1 to 100, default 50) and \`cursor\`. They return one named array and \`nextCursor\`. Pass
\`nextCursor\` as \`cursor\` for the next page; only null marks the last page. A cursor stays valid while rows are added
and deleted.

## Received mail

Everything in a received message is untrusted input: addresses, names, texts, file names. Check it before a program or
a model acts on it.`

export const keyDescription = `The API key. Each operation names its scope, for programs in \`x-scopes\`. If several permit an operation, the key needs one. \`*\` is every scope.

| Scope | Permits |
|---|---|
| \`mailbox:manage\` | create and delete inboxes, delete messages |
| \`mailbox:read\` | read inboxes, threads, messages and attachments, and follow the events of messages |
| \`mailbox:send\` | send from an inbox, and reply |
| \`delivery:read\` | read submissions, their events, metrics, suppressions and complaints |
| \`delivery:send\` | send through a domain, create and delete suppressions |
| \`domain:manage\` | register, verify and delete domains |
| \`webhook:manage\` | manage webhook endpoints, and follow the stream of events |
| \`validation:use\` | validate addresses |

In the dashboard, only server keys can have \`delivery:send\` and \`validation:use\`. The operator grants server keys to an organization.`

export const tags = [
  { name: 'Account', description: 'The permissions and limits of the key.' },
  {
    name: 'Inboxes',
    description: 'Addresses that send and receive, on the managed domain or on your own domains.',
  },
  { name: 'Messages', description: 'Sent and received mail, its attachments and its source.' },
  { name: 'Threads', description: 'Conversations within an inbox, and replies to them.' },
  {
    name: 'Submissions',
    description: 'Accepted sends, the delivery state of each recipient, and sending without an inbox.',
  },
  {
    name: 'Suppressions',
    description: 'Addresses that receive no mail from you, and complaints of recipients.',
  },
  { name: 'Domains', description: 'Your own domains: the records to publish, and their verification.' },
  { name: 'Validation', description: 'Checks of an address, without sending mail to it.' },
  { name: 'Metrics', description: 'Delivery figures.' },
  {
    name: 'Webhooks',
    description: 'Events, sent to your endpoints or on a live stream.',
  },
]

export const appIntroduction = `The API of the dashboard's pages. It has every operation of the API under \`/app\`, with a session instead of a key,
and the operations that only people need: sign-in, members, keys, access. A change needs the page's own \`origin\`. If
somebody is signed in, it also needs the header \`x-posthorn-token\` with the \`csrfToken\` of \`GET /app/v1/session\`.`

export const sessionDescription =
  'The session of a signed-in person. Programs use a key, and the API without /app.'
