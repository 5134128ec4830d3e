// The validation of a list of addresses: upload, checks in batches of a hundred, results, and download.
import { Download, RotateCcw } from 'lucide-react'
import { useMemo, useState } from 'react'
import { Batch, useBatch } from '../../api/batch.ts'
import { api, read } from '../../api/client.ts'
import { download } from '../../parts/download.ts'
import { ErrorNote } from '../../parts/error-note.tsx'
import { Button } from '../../parts/form/button.tsx'
import { type ListedAddress, readAddresses } from '../../parts/list/address-list.ts'
import { BatchProgress } from '../../parts/list/batch-progress.tsx'
import { BringList } from '../../parts/list/bring-list.tsx'
import { writeCsv } from '../../parts/list/csv.ts'
import { suppressions } from '../../texts/suppressions.ts'
import { validation } from '../../texts/validation.ts'
import { type Result, Results } from './results.tsx'

type ListBatch = Batch<ListedAddress[], Result[]>

const chunkSize = 100
const mostLines = 10_000
/** The API's limit for one text. */
const mostLetters = 320
const numbers = new Intl.NumberFormat('en')

export function ManyAddresses() {
  const [text, setText] = useState('')
  const [begun, setBegun] = useState<{ batch: ListBatch; lineCount: number } | null>(null)
  if (begun)
    return (
      <Judged
        {...begun}
        onAgain={() => {
          begun.batch.cancel()
          setBegun(null)
          setText('')
        }}
      />
    )
  return (
    <Bring
      text={text}
      onText={setText}
      onStart={(lines) => {
        const batch: ListBatch = new Batch(chunksOf(lines), judge)
        setBegun({ batch, lineCount: lines.length })
        batch.start()
      }}
    />
  )
}

function chunksOf(lines: readonly ListedAddress[]): ListedAddress[][] {
  const chunks: ListedAddress[][] = []
  for (let at = 0; at < lines.length; at += chunkSize) chunks.push(lines.slice(at, at + chunkSize))
  return chunks
}

async function judge(lines: ListedAddress[]): Promise<Result[]> {
  const emails = lines.map(({ email }) => email.slice(0, mostLetters))
  const { results } = await read(api.POST('/v1/validate/bulk', { body: { emails } }))
  return results.map((result, index) => ({ ...result, line: lines[index]!.line }))
}

interface BringProps {
  text: string
  onText: (text: string) => void
  onStart: (lines: ListedAddress[]) => void
}

function Bring({ text, onText, onStart }: BringProps) {
  const { addresses, duplicates, others } = useMemo(() => readAddresses(text), [text])
  const lines = [...addresses, ...others].sort((a, b) => a.line - b.line)
  const isTooLong = lines.length > mostLines
  return (
    <div className="grid max-w-3xl grid-cols-1 gap-4">
      <p className="text-muted">{validation.listWhat(numbers.format(mostLines))}</p>
      <BringList text={text} onText={onText} />
      {duplicates > 0 && <p className="text-sm text-muted">{suppressions.duplicates(duplicates)}</p>}
      {isTooLong && (
        <p role="alert" className="text-sm text-bad">
          {validation.tooMany(numbers.format(lines.length), numbers.format(mostLines))}
        </p>
      )}
      <div>
        <Button variant="primary" disabled={lines.length === 0 || isTooLong} onClick={() => onStart(lines)}>
          {validation.start(lines.length)}
        </Button>
      </div>
    </div>
  )
}

const columns = ['line', 'email', 'normalized', 'verdict', 'reason', 'suggestion', 'mxHosts'] as const

interface JudgedProps {
  batch: ListBatch
  lineCount: number
  onAgain: () => void
}

function Judged({ batch, lineCount, onAgain }: JudgedProps) {
  const view = useBatch(batch)
  // biome-ignore lint/correctness/useExhaustiveDependencies: the same results array grows, one batch at a time
  const results = useMemo(
    () => view.results.flat().sort((a, b) => a.line - b.line),
    [view.results, view.done],
  )
  const save = () => {
    const rows = results.map((result) => columns.map((name) => fieldOf(result[name])))
    download('validation.csv', 'text/csv', writeCsv([columns, ...rows]))
  }
  return (
    <div className="grid grid-cols-1 gap-5">
      <div className="rounded-lg border bg-surface px-5 py-4">
        <BatchProgress
          label={validation.progress}
          batch={batch}
          view={view}
          size={{ done: results.length, total: lineCount }}
        />
      </div>
      {view.failures.length > 0 && (
        <div className="grid gap-2">
          <p className="text-sm">{validation.refused(view.failures.length)}</p>
          <ErrorNote error={view.failures[0]!.error} />
        </div>
      )}
      <Results
        results={results}
        actions={
          <>
            <Button size="small" icon={Download} disabled={results.length === 0} onClick={save}>
              {validation.download}
            </Button>
            <Button size="small" icon={RotateCcw} onClick={onAgain}>
              {validation.again}
            </Button>
          </>
        }
      />
    </div>
  )
}

function fieldOf(value: string | number | string[] | null): string | number | null {
  return Array.isArray(value) ? value.join(' ') : value
}
