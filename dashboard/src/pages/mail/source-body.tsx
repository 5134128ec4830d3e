// A received message as it came, and all of it for downloading.
import { useQuery } from '@tanstack/react-query'
import { Download } from 'lucide-react'
import { api, read } from '../../api/client.ts'
import { writtenBytes } from '../../parts/bytes.ts'
import { CodeBlock } from '../../parts/code-block.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { reading } from '../../texts/reading.ts'

/** More than this is read in another program. */
const mostBytes = 200_000

export function SourceBody({ messageId }: { messageId: string }) {
  const query = useQuery({
    queryKey: ['source', messageId],
    queryFn: ({ signal }) => readBeginning(messageId, signal),
    staleTime: Number.POSITIVE_INFINITY,
  })
  return (
    <div className="grid min-w-0 gap-3">
      <a
        href={`/app/v1/messages/${messageId}/source`}
        download={`${messageId}.eml`}
        className="flex w-fit items-center gap-1.5 rounded-sm text-sm font-medium text-accent underline-offset-3 hover:underline"
      >
        <Download size={15} aria-hidden />
        {reading.downloadSource}
      </a>
      <Loaded query={query}>
        {({ text, isCut }) => (
          <>
            {isCut && <p className="text-sm text-wait">{reading.sourceCut(writtenBytes(mostBytes))}</p>}
            <CodeBlock label={reading.sourceOf} code={text} />
          </>
        )}
      </Loaded>
    </div>
  )
}

/** The source is bytes: what is no UTF-8 is shown as signs that say so. */
async function readBeginning(
  messageId: string,
  signal: AbortSignal,
): Promise<{ text: string; isCut: boolean }> {
  const params = { path: { messageId } }
  const stream = await read<unknown>(
    api.GET('/v1/messages/{messageId}/source', { params, parseAs: 'stream', signal }),
  )
  const reader = (stream as ReadableStream<Uint8Array>).getReader()
  const decoder = new TextDecoder()
  let text = ''
  let bytes = 0
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return { text: text + decoder.decode(), isCut: false }
    text += decoder.decode(value.subarray(0, mostBytes - bytes), { stream: true })
    bytes += value.length
    if (bytes > mostBytes) {
      await reader.cancel()
      return { text, isCut: true }
    }
  }
}
