// A mail's source, byte for byte: its beginning as text, and the whole as a download.

import { useQuery } from '@tanstack/react-query'
import { Download } from 'lucide-react'
import { reading } from '../../texts/reading.ts'
import { writtenBytes } from '../bytes.ts'
import { CodeBlock } from '../code-block.tsx'
import { Loaded } from '../loaded.tsx'

/** Longer sources must be opened in another program. */
const mostBytes = 200_000

interface MailSourceProps {
  id: string
  /** The path of the file. */
  href: string
  /** Reads the body of that file through the API's client. */
  open: (signal: AbortSignal) => Promise<unknown>
}

export function MailSource({ id, href, open }: MailSourceProps) {
  const query = useQuery({
    queryKey: ['source', id],
    queryFn: async ({ signal }) => readBeginning((await open(signal)) as ReadableStream<Uint8Array>),
    staleTime: Number.POSITIVE_INFINITY,
  })
  return (
    <div className="grid min-w-0 gap-3">
      <a
        href={href}
        download={`${id}.eml`}
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

/** The source is bytes. Invalid UTF-8 is shown as replacement characters. */
async function readBeginning(stream: ReadableStream<Uint8Array>): Promise<{ text: string; isCut: boolean }> {
  const reader = stream.getReader()
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
