// Untrusted text whose URLs become links that open outside.
import { useMemo } from 'react'

const link = /(https?:\/\/[^\s<>"')\]]+[^\s<>"')\].,;:!?])/

export function LinkedText({ text }: { text: string }) {
  // The group in the expression makes every second piece a link. A piece's position is its only identity.
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
