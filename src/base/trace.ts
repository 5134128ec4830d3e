// Spans for OpenTelemetry, through its API alone: where no SDK is registered nothing is made and nothing is kept.
import { type Attributes, isSpanContextValid, SpanStatusCode, trace } from '@opentelemetry/api'

const tracer = trace.getTracer('posthorn')

/** Runs `work` within a span; `describe` is asked only where somebody records it. A rejection marks the span as failed. */
export async function traced<Result>(
  name: string,
  describe: () => Attributes,
  work: () => Promise<Result>,
): Promise<Result> {
  return await tracer.startActiveSpan(name, async (span) => {
    // Without an SDK every span is the same empty one.
    if (!isSpanContextValid(span.spanContext())) return await work()
    if (span.isRecording()) span.setAttributes(describe())
    try {
      return await work()
    } catch (error) {
      span.recordException(error as Error)
      span.setStatus({ code: SpanStatusCode.ERROR })
      throw error
    } finally {
      span.end()
    }
  })
}
