// A secret at its only display: with a copy button and the first call that uses it.
import { KeyRound } from 'lucide-react'
import { parts } from '../../texts/parts.ts'
import { CodeBlock } from '../code-block.tsx'
import { CopyButton } from './copy-button.tsx'

interface SecretOnceProps {
  secret: string
  /** The name of the secret: `the API key`. */
  what: string
  /** A command that works unchanged. */
  firstCall?: string
}

export function SecretOnce({ secret, what, firstCall }: SecretOnceProps) {
  return (
    <div className="grid grid-cols-[minmax(0,1fr)] gap-4">
      <div className="rounded-md border border-accent/40 bg-accent-soft p-4">
        <p className="flex items-center gap-2 font-medium text-accent">
          <KeyRound size={16} aria-hidden />
          {parts.secretOnce}
        </p>
        <p className="mt-0.5 text-sm text-muted">{parts.secretOnceWhy}</p>
        <div className="mt-3 flex items-center gap-2 rounded-md border border-line-strong bg-surface py-1.5 pr-2 pl-3">
          <code className="min-w-0 flex-1 text-sm break-all">{secret}</code>
          <CopyButton text={secret} what={what} worded />
        </div>
      </div>
      {firstCall && (
        <div>
          <p className="mb-1.5 text-sm font-medium">{parts.firstCall}</p>
          <CodeBlock code={firstCall} label={parts.firstCall} />
        </div>
      )}
    </div>
  )
}
