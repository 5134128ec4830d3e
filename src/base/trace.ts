// Spans for OpenTelemetry, through its API alone. If no SDK is registered, no span is made.
import { type Attributes, ProxyTracerProvider, type Span, SpanStatusCode, trace } from '@opentelemetry/api'

const tracer = trace.getTracer('posthorn')
const noProvider = new ProxyTracerProvider().getDelegate()

/** Runs `work` within a span. Calls `describe` only if the span is recorded. A rejection marks the span as failed. */
export function traced<Result>(
  name: string,
  describe: () => Attributes,
  work: () => Promise<Result>,
): Promise<Result> {
  if (!hasSdk()) return work()
  return tracer.startActiveSpan(name, (span) => recorded(span, describe, work))
}

/** Avoids the API's own empty spans, which would cost each send and each mail a microsecond. */
function hasSdk(): boolean {
  const provider = trace.getTracerProvider()
  return !(provider instanceof ProxyTracerProvider && provider.getDelegate() === noProvider)
}

async function recorded<Result>(
  span: Span,
  describe: () => Attributes,
  work: () => Promise<Result>,
): Promise<Result> {
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
}
