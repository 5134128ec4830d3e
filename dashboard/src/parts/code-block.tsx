// Unchanged machine text, such as commands, records and headers, with a copy button.

import { classes } from './classes.ts'
import { CopyButton } from './form/copy-button.tsx'
import { Scrolled } from './scrolled.tsx'

interface CodeBlockProps {
  code: string
  /** The name of the text, for screen readers. */
  label: string
  /** Wraps long lines instead of scrolling. */
  wrap?: boolean
}

export function CodeBlock({ code, label, wrap }: CodeBlockProps) {
  return (
    <div className="flex min-w-0 items-start rounded-md border bg-sunken">
      <Scrolled label={label} className="min-w-0 flex-1 overflow-x-auto rounded-md py-3 pl-4 text-sm">
        <pre className={classes(wrap ? 'break-all whitespace-pre-wrap' : 'w-fit pr-4')}>
          <code>{code}</code>
        </pre>
      </Scrolled>
      <div className="p-1.5">
        <CopyButton text={code} what={label} />
      </div>
    </div>
  )
}
