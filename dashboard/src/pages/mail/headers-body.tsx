// The header fields of a received message, decoded or as they arrived.
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { api, read } from '../../api/client.ts'
import { CodeBlock } from '../../parts/code-block.tsx'
import { Checkbox } from '../../parts/form/field.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { reading } from '../../texts/reading.ts'

export function HeadersBody({ messageId }: { messageId: string }) {
  const [isRaw, setIsRaw] = useState(false)
  const query = useQuery({
    queryKey: ['headers', messageId],
    queryFn: () => read(api.GET('/v1/messages/{messageId}/headers', { params: { path: { messageId } } })),
    staleTime: Number.POSITIVE_INFINITY,
  })
  return (
    <Loaded query={query}>
      {({ headers, truncated }) => (
        <div className="grid min-w-0 gap-3">
          <Checkbox label={reading.rawHeaders} checked={isRaw} onChange={setIsRaw} />
          {isRaw ? (
            <CodeBlock label={reading.headers} code={headers.map(({ raw }) => raw).join('\n')} />
          ) : (
            <Fields fields={headers} />
          )}
          {truncated && <p className="text-sm text-wait">{reading.headersCut}</p>}
        </div>
      )}
    </Loaded>
  )
}

function Fields({ fields }: { fields: readonly { name: string; value: string }[] }) {
  const numbered = fields.map((field, at) => ({ ...field, at }))
  return (
    <dl className="grid min-w-0 overflow-clip rounded-md border text-sm">
      {numbered.map(({ name, value, at }) => (
        <div
          key={at}
          className="grid gap-x-4 border-b px-3 py-1.5 last:border-b-0 sm:grid-cols-[180px_minmax(0,1fr)]"
        >
          <dt className="break-words text-faint">{name}</dt>
          <dd className="min-w-0 font-mono break-words">{value}</dd>
        </div>
      ))}
    </dl>
  )
}
