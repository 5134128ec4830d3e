// Text of a machine, as it is: commands, records, headers; with a button that copies it.
import { classes } from './classes.ts'
import { CopyButton } from './copy-button.tsx'

interface CodeBlockProps {
  code: string
  /** What it is, for who hears the page. */
  label: string
  /** Long lines are broken instead of scrolled. */
  wrap?: boolean
}

export function CodeBlock({ code, label, wrap }: CodeBlockProps) {
  return (
    <div className="relative min-w-0 rounded-md border bg-sunken">
      <section
        aria-label={label}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
        tabIndex={0}
        className="overflow-x-auto rounded-md py-3 pr-12 pl-4 text-sm"
      >
        <pre className={classes('w-fit', wrap && 'w-auto break-all whitespace-pre-wrap')}>
          <code>{code}</code>
        </pre>
      </section>
      <div className="absolute top-1.5 right-1.5 rounded-md bg-sunken">
        <CopyButton text={code} what={label} />
      </div>
    </div>
  )
}
