// Copies a text, and says that it did.
import { Check, Copy } from 'lucide-react'
import { useEffect, useState } from 'react'
import { parts } from '../../texts/parts.ts'
import { Button, IconButton } from './button.tsx'

const visibleMs = 1_600

/** Whether what was copied is still to be said, and what copies. */
export function useCopy(): { copied: boolean; copy: (text: string) => Promise<void> } {
  const [copiedAtMs, setCopiedAtMs] = useState<number | null>(null)
  useEffect(() => {
    if (copiedAtMs === null) return
    const timer = setTimeout(() => setCopiedAtMs(null), visibleMs)
    return () => clearTimeout(timer)
  }, [copiedAtMs])
  const copy = async (text: string) => {
    await writeClipboard(text)
    setCopiedAtMs(Date.now())
  }
  return { copied: copiedAtMs !== null, copy }
}

/** Without HTTPS, beyond this machine, a page has no clipboard but the one of a selected text. */
async function writeClipboard(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text)
  const area = document.createElement('textarea')
  area.value = text
  document.body.append(area)
  area.select()
  document.execCommand('copy')
  area.remove()
}

interface CopyButtonProps {
  text: string
  /** What is copied, for who hears the page: `the API key`. */
  what: string
  /** With its word beside the icon. */
  worded?: boolean
}

export function CopyButton({ text, what, worded }: CopyButtonProps) {
  const { copied, copy } = useCopy()
  const icon = copied ? Check : Copy
  const press = () => void copy(text)
  return (
    <>
      {worded ? (
        <Button size="small" icon={icon} onClick={press} aria-label={parts.copyOf(what)}>
          {copied ? parts.copied : parts.copy}
        </Button>
      ) : (
        <IconButton size="small" icon={icon} label={parts.copyOf(what)} onClick={press} />
      )}
      <span role="status" className="sr-only">
        {copied ? parts.copied : ''}
      </span>
    </>
  )
}
