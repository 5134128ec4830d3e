// Spans: none without an SDK; with one, their attributes, failures and children.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { INVALID_SPAN_CONTEXT, type Span, trace } from '@opentelemetry/api'
import { traced } from './trace.ts'

test('without an SDK no span is recorded', async () => {
  const describe = () => assert.fail('nobody records this')
  assert.equal(await traced('accept', describe, async () => 7), 7)
})

test('with an SDK a span records its attributes and its failure', async (t) => {
  const told: unknown[] = []
  const span = (name: string) =>
    ({
      spanContext: () => ({ ...INVALID_SPAN_CONTEXT, traceId: '1'.repeat(32), spanId: '2'.repeat(16) }),
      isRecording: () => true,
      setAttributes: (attributes: object) => told.push([name, attributes]),
      recordException: (error: Error) => told.push([name, error.message]),
      setStatus: () => {},
      end: () => told.push([name, 'ended']),
    }) as unknown as Span
  const startActiveSpan = (name: string, work: (span: Span) => unknown) => work(span(name))
  trace.setGlobalTracerProvider({ getTracer: () => ({ startActiveSpan }) } as never)
  t.after(() => trace.disable())
  await traced(
    'file',
    () => ({ message: 'msg_1' }),
    async () => {},
  )
  await assert.rejects(
    traced(
      'deliver',
      () => ({}),
      () => Promise.reject(new Error('lost')),
    ),
    /lost/,
  )
  assert.deepEqual(told, [
    ['file', { message: 'msg_1' }],
    ['file', 'ended'],
    ['deliver', {}],
    ['deliver', 'lost'],
    ['deliver', 'ended'],
  ])
})
