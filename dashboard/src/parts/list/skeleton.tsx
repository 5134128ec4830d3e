// The placeholder of loading content, shown only after 200 ms so that fast answers do not flicker.
import { parts } from '../../texts/parts.ts'
import { classes } from '../classes.ts'

export function Skeleton({ className }: { className?: string }) {
  return (
    <div aria-hidden className="animate-late">
      <div className={classes('animate-breathe rounded-md bg-idle-soft', className ?? 'h-4')} />
    </div>
  )
}

/** Lines of a loading list or table. */
export function SkeletonRows({ count = 5 }: { count?: number }) {
  return (
    <div role="status" aria-label={parts.loading} className="grid gap-3 p-4">
      {Array.from({ length: count }, (_, row) => row).map((row) => (
        <Skeleton key={row} className={classes('h-4', ['w-full', 'w-11/12', 'w-4/5'][row % 3])} />
      ))}
    </div>
  )
}
