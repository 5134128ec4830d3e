// The list of required proofs comes from the specification's own tables, and loses none of their rows.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Operation } from './document.ts'
import { listRequired, readEndpointTables, readNamedOperations } from './required.ts'

const specification = `
| Method, path | Scope | Request | Success | Error statuses |
|---|---|---|---|---|
| GET \`/v1/me\` | none | none | 200 profile | 400, 401 |
| POST \`/v1/things\` | \`a:b\` | \`name\` (\`^(?:a\\|b){100}$\`, 1 to 200 characters) | 201 Thing | 400, 409 |
| POST \`/v1/things/{thingId}/parts\` | \`a:b\` | x | 202 envelope; as in 200 others | 410 documented (see Errors); others: not shown |
| GET \`/v1/things/{thingId}\` | \`a:b\` | x | 200 Thing | statuses not listed individually |
`

test('the specification’s tables are read row by row', () => {
  assert.deepEqual(readEndpointTables(specification), [
    { operation: 'GET /v1/me', statuses: [200, 400, 401] },
    { operation: 'POST /v1/things', statuses: [201, 400, 409] },
    { operation: 'POST /v1/things/{thingId}/parts', statuses: [202, 410] },
    { operation: 'GET /v1/things/{thingId}', statuses: [200] },
  ])
})

test('the operations that a decision names are found', () => {
  const decisions =
    'Additions: `GET /v1/things` (filters), `PATCH`, `POST /v1/things/{id}/test`; `GET /v1/things`.'
  assert.deepEqual(readNamedOperations(decisions), ['GET /v1/things', 'POST /v1/things/{id}/test'])
})

test('specification, decisions and document are joined, in this order', () => {
  const judge = null as never
  const documented = (name: string, codes: [number, string][]) =>
    ({
      name,
      refusals: codes.map(([status, code]) => ({ status, code, judge })),
      success: { status: 200, mediaType: null, judge },
    }) as unknown as Operation
  const required = listRequired({ specification, decisions: '`GET /v1/more/{id}`' }, [
    documented('GET /v1/last', []),
    documented('GET /v1/more/{moreId}', [[404, 'not_found']]),
    documented('GET /v1/me', [
      [401, 'unauthorized'],
      [413, 'payload_too_large'],
    ]),
  ])
  const shown = required.map(({ operation, status, code }) => `${operation} ${status} ${code ?? '-'}`)
  assert.deepEqual(shown, [
    ...[
      'GET /v1/me 200 -',
      'GET /v1/me 400 -',
      'GET /v1/me 401 unauthorized',
      'GET /v1/me 413 payload_too_large',
    ],
    ...['POST /v1/things 201 -', 'POST /v1/things 400 -', 'POST /v1/things 409 -'],
    ...['POST /v1/things/{thingId}/parts 202 -', 'POST /v1/things/{thingId}/parts 410 -'],
    ...[
      'GET /v1/things/{thingId} 200 -',
      'GET /v1/more/{moreId} 200 -',
      'GET /v1/more/{moreId} 404 not_found',
    ],
    'GET /v1/last 200 -',
  ])
})
