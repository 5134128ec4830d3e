// Unchanged machine text, such as commands, records and headers, with a copy button. Long lines wrap.
import { CopyButton } from './form/copy-button.tsx'
import { Scrolled } from './scrolled.tsx'

interface CodeBlockProps {
  code: string
  /** The name of the text, for screen readers. */
  label: string
}

export function CodeBlock({ code, label }: CodeBlockProps) {
  return (
    <div className="flex min-w-0 items-start rounded-md border bg-sunken">
      <Scrolled label={label} className="min-w-0 flex-1 rounded-md py-3 pl-4 text-sm">
        <pre className="whitespace-pre-wrap wrap-anywhere">
          <code>{code}</code>
        </pre>
      </Scrolled>
      <div className="p-1.5">
        <CopyButton text={code} what={label} />
      </div>
    </div>
  )
}
