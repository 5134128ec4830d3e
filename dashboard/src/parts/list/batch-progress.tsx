// The progress of many calls, a pause if there is one, and buttons to hold, resume and cancel.
import { CirclePause, Play, X } from 'lucide-react'
import { useEffect, useState } from 'react'
import type { Batch, BatchView } from '../../api/batch.ts'
import { batches } from '../../texts/batches.ts'
import { duration } from '../duration.ts'
import { Button } from '../form/button.tsx'
import { Progress } from '../progress.tsx'

interface BatchProgressProps {
  label: string
  batch: Pick<Batch<never, never>, 'start' | 'hold' | 'cancel'>
  view: Pick<BatchView<unknown, unknown>, 'state' | 'done' | 'total' | 'waitUntilMs'>
  /** The number of items, if one call covers several. */
  size?: { done: number; total: number }
}

export function BatchProgress({ label, batch, view, size }: BatchProgressProps) {
  const { state, waitUntilMs } = view
  const { done, total } = size ?? view
  const isOver = state === 'done' || state === 'cancelled'
  return (
    <div className="grid gap-3">
      <Progress label={label} value={done} max={total} />
      <div className="flex min-h-8 flex-wrap items-center gap-2 text-sm text-muted">
        <span role="status" className="flex-1">
          {state === 'waiting' ? <Wait untilMs={waitUntilMs} /> : batches[state]}
        </span>
        {!isOver && (
          <>
            {state === 'held' ? (
              <Button size="small" icon={Play} onClick={() => batch.start()}>
                {batches.goOn}
              </Button>
            ) : (
              <Button size="small" icon={CirclePause} onClick={() => batch.hold()}>
                {batches.hold}
              </Button>
            )}
            <Button size="small" icon={X} onClick={() => batch.cancel()}>
              {batches.cancel}
            </Button>
          </>
        )}
      </div>
    </div>
  )
}

function Wait({ untilMs }: { untilMs: number | null }) {
  const [nowMs, setNowMs] = useState(Date.now)
  useEffect(() => {
    const timer = setInterval(() => setNowMs(Date.now()), 1_000)
    return () => clearInterval(timer)
  }, [])
  return batches.waits(duration(Math.max(1_000, (untilMs ?? 0) - nowMs)))
}
