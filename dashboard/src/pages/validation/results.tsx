// The results of a list, filtered by verdict and by text, of which only visible rows are rendered.
import { type ReactNode, useState } from 'react'
import type { Schemas } from '../../api/client.ts'
import { Badge, toneOf } from '../../parts/badge.tsx'
import { TextField } from '../../parts/form/field.tsx'
import { Segments } from '../../parts/form/segments.tsx'
import { VirtualList } from '../../parts/list/virtual-list.tsx'
import { useIsNarrow } from '../../parts/use-narrow.ts'
import { validation } from '../../texts/validation.ts'

export type Result = Schemas['Validation'] & { line: number }

type Verdict = Result['verdict']

const verdicts: Verdict[] = ['deliverable', 'risky', 'undeliverable', 'unknown']
const rowPx = 52
/** All results are already in the page. */
const nothingToFetch = {
  hasNextPage: false,
  isFetchingNextPage: false,
  isPending: false,
  error: null,
  fetchNextPage: async () => ({}) as never,
  refetch: async () => ({}) as never,
}

export function Results({ results, actions }: { results: readonly Result[]; actions: ReactNode }) {
  const [verdict, setVerdict] = useState<Verdict | ''>('')
  const [text, setText] = useState('')
  const counts = Map.groupBy(results, (result) => result.verdict)
  const wanted = text.trim().toLowerCase()
  const rows = results.filter(
    (result) => (verdict === '' || result.verdict === verdict) && result.email.toLowerCase().includes(wanted),
  )
  const options = [
    { value: '' as const, label: `${validation.all} ${results.length}` },
    ...verdicts.map((value) => ({
      value,
      label: `${validation.short[value]} ${counts.get(value)?.length ?? 0}`,
    })),
  ]
  return (
    <section aria-label={validation.results} className="overflow-clip rounded-lg border bg-surface">
      <div className="grid gap-3 border-b px-4 py-3 sm:px-5">
        <div className="flex flex-wrap items-center justify-between gap-2">
          <div className="w-full sm:w-64">
            <TextField
              label={validation.find}
              labelHidden
              type="search"
              placeholder={validation.find}
              value={text}
              onChange={(event) => setText(event.target.value)}
            />
          </div>
          <div className="flex flex-wrap gap-2">{actions}</div>
        </div>
        <Segments label={validation.results} value={verdict} options={options} onChange={setVerdict} />
      </div>
      <VirtualList
        label={validation.results}
        query={nothingToFetch}
        rows={rows}
        keyOf={({ line }) => String(line)}
        rowPx={rowPx}
        className="max-h-[max(360px,calc(100dvh-420px))] overflow-y-auto"
        empty={<p className="px-5 py-8 text-center text-muted">{validation.none}</p>}
      >
        {(result) => <ResultRow result={result} />}
      </VirtualList>
    </section>
  )
}

function ResultRow({ result: { line, email, verdict, reason, suggestion } }: { result: Result }) {
  const isNarrow = useIsNarrow()
  const why = [validation.reasons[reason], suggestion && `${validation.didYouMean} ${suggestion}?`]
    .filter(Boolean)
    .join(' ')
  return (
    <div
      data-row
      // biome-ignore lint/a11y/noNoninteractiveTabindex: the keys j and k focus rows
      tabIndex={0}
      className="grid h-full grid-cols-[minmax(0,1fr)_auto] items-center gap-x-4 border-b px-4 -outline-offset-2 sm:grid-cols-[44px_minmax(0,1fr)_130px_minmax(0,1.3fr)] sm:px-5"
    >
      <span className="numbers hidden text-sm text-faint sm:block">{line}</span>
      <span className="min-w-0">
        <span className="block truncate font-medium">{email}</span>
        {isNarrow && <span className="block truncate text-xs text-faint">{why}</span>}
      </span>
      <span className="flex">
        <Badge tone={toneOf(verdict)}>{validation.short[verdict]}</Badge>
      </span>
      {!isNarrow && <span className="truncate text-sm text-muted">{why}</span>}
    </div>
  )
}
