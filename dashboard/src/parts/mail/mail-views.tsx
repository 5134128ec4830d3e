// A mail as HTML in a frame without scripts, as text, and as its source if the page has one.
import { lazy, type ReactNode, Suspense, useState } from 'react'
import { reading } from '../../texts/reading.ts'
import { Segments } from '../form/segments.tsx'
import { SkeletonRows } from '../list/skeleton.tsx'
import { LinkedText } from './linked-text.tsx'

const MailFrame = lazy(async () => ({ default: (await import('./mail-frame.tsx')).MailFrame }))

interface Letter {
  id: string
  /** The HTML as sanitized by the service, or null if there is none. */
  html: string | null
  remoteImages: number
  text: string
  source?: ReactNode
}

type View = 'html' | 'text' | 'source'

const views: Record<View, (letter: Letter) => ReactNode> = {
  html: ({ id, html, remoteImages }) => (
    <div className="grid min-w-0 gap-3">
      <MailFrame id={id} html={html ?? ''} remoteImages={remoteImages} />
    </div>
  ),
  text: ({ text }) =>
    text.trim() ? (
      <div className="break-words whitespace-pre-wrap">
        <LinkedText text={text} />
      </div>
    ) : (
      <p className="text-faint">{reading.emptyText}</p>
    ),
  source: ({ source }) => source,
}

export function MailViews(letter: Letter) {
  const offered = (['html', 'text', 'source'] as const).filter(
    (view) => view === 'text' || (letter[view] ?? null) !== null,
  )
  const [view, setView] = useState<View>(offered[0]!)
  const options = offered.map((value) => ({ value, label: reading[value] }))
  return (
    <>
      {offered.length > 1 && (
        <div className="flex">
          <Segments label={reading.views} options={options} value={view} onChange={setView} />
        </div>
      )}
      <Suspense fallback={<SkeletonRows />}>{views[view](letter)}</Suspense>
    </>
  )
}
