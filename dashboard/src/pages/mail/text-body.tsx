// A message as text: links that open outside, and what it quotes folded away.
import { useMemo, useState } from 'react'
import { Button } from '../../parts/button.tsx'
import { reading } from '../../texts/reading.ts'
import type { Message } from './mail-queries.ts'

const link = /(https?:\/\/[^\s<>"')\]]+[^\s<>"')\].,;:!?])/

export function TextBody({ message: { text, extractedText } }: { message: Message }) {
  const [isWhole, setIsWhole] = useState(false)
  const own = extractedText?.trim() ?? ''
  const hasQuoted = own !== '' && own !== text.trim()
  const shown = hasQuoted && !isWhole ? own : text
  if (shown.trim() === '') return <p className="text-faint">{reading.emptyText}</p>
  return (
    <div className="grid gap-3">
      <div className="text-base break-words whitespace-pre-wrap">
        <Linked text={shown} />
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

function Linked({ text }: { text: string }) {
  // With the group in the expression every other piece is a link; where it stands is all that a piece is.
  const pieces = useMemo(() => text.split(link).map((piece, at) => ({ piece, at })), [text])
  return pieces.map(({ piece, at }) =>
    at % 2 === 0 ? (
      piece
    ) : (
      <a
        key={at}
        href={piece}
        target="_blank"
        rel="noopener noreferrer"
        className="break-all text-accent underline underline-offset-3"
      >
        {piece}
      </a>
    ),
  )
}
