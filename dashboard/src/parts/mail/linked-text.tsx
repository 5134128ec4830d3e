// Text of a stranger in which addresses of pages are links that open outside.
import { useMemo } from 'react'

const link = /(https?:\/\/[^\s<>"')\]]+[^\s<>"')\].,;:!?])/

export function LinkedText({ text }: { text: string }) {
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
