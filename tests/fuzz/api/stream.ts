// Fuzzes the live stream: it never ends, so the test reads its start and leaves.
import assert from 'node:assert/strict'
import fc from 'fast-check'

const number = (digits: number) => fc.stringMatching(new RegExp(`^[0-9]{1,${digits}}$`))

/** Values of the last-event-id header: none, any text, or one that resembles an issued id. */
const lastEventId = fc.oneof(
  fc.constant(undefined),
  fc.string({ unit: fc.constantFrom(...' !"#\'(),-./0:;<=>?@A\\_`a{|}~\xe9\xff\t') }),
  fc
    .tuple(fc.uuid(), number(20), number(16), number(6))
    .map(([id, xact, seq, item]) => `${id}.${xact}-${seq}-${item}`),
  fc.integer({ min: 1, max: 10_000 }).map((length) => '9'.repeat(length)),
)

/** Opens `requests` streams, a few at a time. Throws at the first one that does not start as documented. */
export async function fuzzStream(
  base: string,
  secret: string,
  { requests, seed, count }: { requests: number; seed: number; count(status: number): void },
): Promise<void> {
  const together = Math.min(10, requests)
  const ids = fc.array(lastEventId, { minLength: together, maxLength: together })
  const property = fc.asyncProperty(ids, async (some) => {
    await Promise.all(some.map(async (id) => count(await open(base, secret, id))))
  })
  await fc.assert(property, { numRuns: Math.ceil(requests / together), seed, includeErrorInReport: true })
}

async function open(base: string, secret: string, id: string | undefined): Promise<number> {
  const leaving = new AbortController()
  const headers = { 'x-api-key': secret, ...(id !== undefined && { 'last-event-id': id }) }
  try {
    const response = await fetch(`${base}/v1/events`, { headers, signal: leaving.signal })
    assert.equal(response.status, 200)
    assert.equal(response.headers.get('content-type'), 'text/event-stream; charset=utf-8')
    assert.equal(response.headers.get('cache-control'), 'no-store')
    assert.ok(response.headers.has('x-request-id') && response.headers.has('ratelimit'))
    const { value } = await response.body!.getReader().read()
    const [first = ''] = Buffer.from(value!).toString().split('\n\n')
    if (id === undefined) assert.equal(first.split('\n')[0], ':')
    else assert.match(first, /^(?:id: \S+\n)?event: stream\.reset\ndata: \{"type":"stream\.reset",.*\}$/)
    return response.status
  } finally {
    leaving.abort()
  }
}
