// Imports a list of addresses to suppress: the parsed entries, the progress, and the refused entries.
import { useQueryClient } from '@tanstack/react-query'
import { useMemo, useState } from 'react'
import { Batch, useBatch } from '../../api/batch.ts'
import { api, read } from '../../api/client.ts'
import { wordsOf } from '../../parts/error-note.tsx'
import { Button } from '../../parts/form/button.tsx'
import { Dialog } from '../../parts/form/dialog.tsx'
import type { ListedAddress } from '../../parts/list/address-list.ts'
import { BatchProgress } from '../../parts/list/batch-progress.tsx'
import { BringList } from '../../parts/list/bring-list.tsx'
import { parts } from '../../texts/parts.ts'
import { suppressions } from '../../texts/suppressions.ts'
import { type ListedSuppression, readSuppressionList, type SuppressionListing } from './suppression-list.ts'

type ImportBatch = Batch<ListedSuppression, null>

const suppress = async ({ line: _, ...body }: ListedSuppression) => {
  await read(api.POST('/v1/suppressions/import', { body }))
  return null
}
const shownOthers = 5
const shownFailures = 100

export function ImportDialog({ open, onClose }: { open: boolean; onClose: () => void }) {
  const [text, setText] = useState('')
  const [batch, setBatch] = useState<ImportBatch | null>(null)
  const queries = useQueryClient()
  const listing = useMemo(() => readSuppressionList(text, Date.now()), [text])
  const close = () => {
    batch?.cancel()
    onClose()
    setBatch(null)
    setText('')
    void queries.invalidateQueries({ queryKey: ['suppressions'] })
  }
  const begin = () => {
    const begun: ImportBatch = new Batch(listing.suppressions, suppress)
    setBatch(begun)
    begun.start()
  }
  const { length } = listing.suppressions
  const footer = batch ? (
    <Button onClick={close}>{suppressions.close}</Button>
  ) : (
    <>
      <Button onClick={close}>{parts.cancel}</Button>
      <Button variant="primary" disabled={length === 0} onClick={begin}>
        {suppressions.importDo(length)}
      </Button>
    </>
  )
  return (
    <Dialog
      open={open}
      onClose={close}
      width="large"
      title={suppressions.importTitle}
      lead={suppressions.importWhat}
      footer={footer}
    >
      {batch ? (
        <Running batch={batch} />
      ) : (
        <div className="grid grid-cols-1 gap-4">
          <BringList text={text} onText={setText} />
          {text.trim() !== '' && <Preview listing={listing} />}
        </div>
      )}
    </Dialog>
  )
}

function Preview({ listing }: { listing: SuppressionListing }) {
  const { suppressions: found, duplicates, others } = listing
  return (
    <section aria-label={suppressions.preview} className="rounded-md border bg-sunken px-4 py-3 text-sm">
      <p role="status" className="font-medium">
        {suppressions.found(found.length)}
      </p>
      <p className="text-muted">{countsOf(found).join(' · ')}</p>
      {duplicates > 0 && <p className="text-muted">{suppressions.duplicates(duplicates)}</p>}
      {others.length > 0 && <p className="text-wait">{suppressions.others(others.length)}</p>}
      {others.length > 0 && <Lines lines={others.slice(0, shownOthers)} />}
      {found.length > 0 && (
        <p className="mt-2 truncate text-faint">
          {suppressions.firstOnes}:{' '}
          {found
            .slice(0, 5)
            .map(({ email }) => email)
            .join(', ')}
        </p>
      )}
    </section>
  )
}

/** Counts the entries per reason, those with a date, and those with a note. */
function countsOf(found: readonly ListedSuppression[]): string[] {
  const reasons = [...new Set(found.map(({ reason }) => reason))]
  const countOf = (reason: ListedSuppression['reason']) => found.filter((one) => one.reason === reason).length
  const dated = found.filter(({ createdAt }) => createdAt !== null).length
  const noted = found.filter(({ note }) => note !== null).length
  return [
    ...reasons.map((reason) => suppressions.reasonCount(suppressions.reasons[reason], countOf(reason))),
    ...(dated > 0 ? [suppressions.dated(dated)] : []),
    ...(noted > 0 ? [suppressions.noted(noted)] : []),
  ]
}

function Lines({ lines }: { lines: readonly (ListedAddress & { why?: string })[] }) {
  return (
    <ul className="mt-1 grid gap-0.5">
      {lines.map(({ line, email, why }) => (
        <li key={line} className="flex min-w-0 gap-2">
          <span className="numbers shrink-0 text-faint">
            {suppressions.line} {line}
          </span>
          <span className="min-w-0 flex-1 truncate">{email}</span>
          {why && <span className="max-w-[50%] text-bad">{why}</span>}
        </li>
      ))}
    </ul>
  )
}

function Running({ batch }: { batch: ImportBatch }) {
  const view = useBatch(batch)
  const refused = view.failures.slice(0, shownFailures)
  return (
    <div className="grid grid-cols-1 gap-4">
      <BatchProgress label={suppressions.importProgress} batch={batch} view={view} />
      {refused.length > 0 && (
        <div className="text-sm">
          <p className="font-medium text-bad">{suppressions.importFailed(view.failures.length)}</p>
          <Lines lines={refused.map(({ item, error }) => ({ ...item, why: wordsOf(error).title }))} />
        </div>
      )}
    </div>
  )
}
