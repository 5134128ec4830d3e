// The same step in several languages (curl, TypeScript, Python), with a choice that is remembered.
import { useState } from 'react'
import { classes } from './classes.ts'
import { CodeBlock } from './code-block.tsx'

const stored = 'posthorn.language'

/** `codes` has the code of each language, in display order. */
export function CodeTabs({ label, codes }: { label: string; codes: Record<string, string> }) {
  const names = Object.keys(codes)
  const [chosen, setChosen] = useState(() => localStorage.getItem(stored) ?? names[0]!)
  const name = names.includes(chosen) ? chosen : names[0]!
  const choose = (next: string) => {
    localStorage.setItem(stored, next)
    setChosen(next)
  }
  return (
    <div className="min-w-0">
      <fieldset className="mb-2 flex gap-1">
        <legend className="sr-only">{label}</legend>
        {names.map((one) => (
          <button
            key={one}
            type="button"
            aria-pressed={one === name}
            onClick={() => choose(one)}
            className={classes(
              'h-7 rounded-md px-2.5 text-sm',
              one === name ? 'bg-idle-soft font-medium text-ink' : 'text-muted hover:text-ink',
            )}
          >
            {one}
          </button>
        ))}
      </fieldset>
      <CodeBlock code={codes[name]!} label={`${label}: ${name}`} />
    </div>
  )
}
