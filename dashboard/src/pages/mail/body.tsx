// The body of a message: as HTML, as text, as header fields, or as source.
import { usePrefetchQuery } from '@tanstack/react-query'
import { lazy, type ReactNode, Suspense, useState } from 'react'
import { classes } from '../../parts/classes.ts'
import { SkeletonRows } from '../../parts/list/skeleton.tsx'
import { reading } from '../../texts/reading.ts'
import { type Message, pageQuery } from './mail-queries.ts'
import { TextBody } from './text-body.tsx'

const HtmlBody = lazy(async () => ({ default: (await import('./html/html-body.tsx')).HtmlBody }))
const HeadersBody = lazy(async () => ({ default: (await import('./headers-body.tsx')).HeadersBody }))
const SourceBody = lazy(async () => ({ default: (await import('./source-body.tsx')).SourceBody }))

type View = 'html' | 'text' | 'headers' | 'source'

const views: Record<View, (message: Message) => ReactNode> = {
  html: (message) => <HtmlView message={message} />,
  text: (message) => <TextBody message={message} />,
  headers: ({ id }) => <HeadersBody messageId={id} />,
  source: ({ id }) => <SourceBody messageId={id} />,
}

/** Fetches the HTML in parallel with the code that shows it. */
function HtmlView({ message }: { message: Message }) {
  usePrefetchQuery(pageQuery(message.id))
  return <HtmlBody message={message} />
}

/** Returns the available views. A sent message has no source. */
function viewsOf({ html, direction }: Message): View[] {
  return [
    ...(html === undefined ? [] : (['html'] as const)),
    'text',
    ...(direction === 'inbound' ? (['headers', 'source'] as const) : []),
  ]
}

export function Body({ message }: { message: Message }) {
  const offered = viewsOf(message)
  const [view, setView] = useState<View>(offered[0]!)
  return (
    <div className="grid min-w-0 gap-3">
      {offered.length > 1 && (
        <fieldset className="flex gap-1">
          <legend className="sr-only">{reading.views}</legend>
          {offered.map((one) => (
            <button
              key={one}
              type="button"
              aria-pressed={one === view}
              onClick={() => setView(one)}
              className={classes(
                'h-7 rounded-md px-2.5 text-sm',
                one === view ? 'bg-idle-soft font-medium text-ink' : 'text-muted hover:text-ink',
              )}
            >
              {reading[one]}
            </button>
          ))}
        </fieldset>
      )}
      {message.truncated && <p className="text-sm text-wait">{reading.truncated}</p>}
      <Suspense fallback={<SkeletonRows />}>{views[view](message)}</Suspense>
    </div>
  )
}
