// The current position in a few steps.
import { Check } from 'lucide-react'
import { classes } from './classes.ts'

interface StepsProps {
  label: string
  steps: readonly string[]
  /** The current step, from 1. */
  at: number
  /** Returns the words for a step, such as `Step 2 of 4`. */
  stepOf: (at: number, count: number) => string
}

export function Steps({ label, steps, at, stepOf }: StepsProps) {
  return (
    <ol aria-label={label} className="flex flex-wrap gap-x-5 gap-y-2">
      {steps.map((step, index) => (
        <li
          key={step}
          aria-current={index + 1 === at ? 'step' : undefined}
          className={classes(
            'flex items-center gap-2 text-sm',
            index + 1 === at ? 'font-medium text-ink' : 'text-faint',
          )}
        >
          <span
            aria-hidden
            className={classes(
              'numbers grid size-5.5 place-items-center rounded-full text-xs font-medium',
              index + 1 < at && 'bg-good-soft text-good',
              index + 1 === at && 'bg-accent text-on-accent',
              index + 1 > at && 'bg-idle-soft text-idle',
            )}
          >
            {index + 1 < at ? <Check size={13} /> : index + 1}
          </span>
          <span className="sr-only">{stepOf(index + 1, steps.length)}: </span>
          {step}
        </li>
      ))}
    </ol>
  )
}
