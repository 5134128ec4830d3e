// A message as text: links open outside, and quotes are folded.

import { useState } from 'react'
import { Button } from '../../parts/form/button.tsx'
import { LinkedText } from '../../parts/mail/linked-text.tsx'
import { reading } from '../../texts/reading.ts'
import type { Message } from './mail-queries.ts'

export function TextBody({ message: { text, extractedText } }: { message: Message }) {
  const [isWhole, setIsWhole] = useState(false)
  const own = extractedText?.trim() ?? ''
  const hasQuoted = own !== '' && own !== text.trim()
  const shown = hasQuoted && !isWhole ? own : text
  if (shown.trim() === '') return <p className="text-faint">{reading.emptyText}</p>
  return (
    <div className="grid gap-3">
      <div className="text-base break-words whitespace-pre-wrap">
        <LinkedText text={shown} />
      </div>
      {hasQuoted && (
        <div>
          <Button size="small" aria-expanded={isWhole} onClick={() => setIsWhole(!isWhole)}>
            {isWhole ? reading.hideQuoted : reading.showQuoted}
          </Button>
        </div>
      )}
    </div>
  )
}
