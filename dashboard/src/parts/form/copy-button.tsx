// Copies a text and confirms it.
import { Check, Copy } from 'lucide-react'
import { useEffect, useState } from 'react'
import { parts } from '../../texts/parts.ts'
import { Button, IconButton } from './button.tsx'

const visibleMs = 1_600

/** Returns whether to show `Copied` now, and the function that copies. */
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

/** Pages without HTTPS, except on this machine, can only copy a selected text. */
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
  /** The name of the copied text, for screen readers: `the API key`. */
  what: string
  /** Shows the word next to the icon. */
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
