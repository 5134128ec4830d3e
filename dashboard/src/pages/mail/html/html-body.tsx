// A message as HTML: made safe by the service and once more here, shown in a frame in which nothing runs or loads by itself.
import { useQuery } from '@tanstack/react-query'
import { ImageOff } from 'lucide-react'
import { useEffect, useRef, useState } from 'react'
import { api, read } from '../../../api/client.ts'
import { Button } from '../../../parts/button.tsx'
import { Loaded } from '../../../parts/loaded.tsx'
import { reading } from '../../../texts/reading.ts'
import { attachmentPath } from '../attachments.tsx'
import type { Message } from '../mail-queries.ts'
import { readInlineImage } from './inline-image.ts'
import { fillSheet, followHeight } from './sheet.ts'

export function HtmlBody({ message }: { message: Message }) {
  const [pictures, setPictures] = useState<'blocked' | 'loaded'>('blocked')
  const query = useQuery({
    queryKey: ['page', message.id],
    queryFn: () =>
      read(api.GET('/v1/messages/{messageId}/page', { params: { path: { messageId: message.id } } })),
    staleTime: Number.POSITIVE_INFINITY,
  })
  return (
    <Loaded query={query}>
      {({ html, remoteImages, cut }) => (
        <div className="grid min-w-0 gap-3">
          {remoteImages > 0 && pictures === 'blocked' && (
            <PicturesBar count={remoteImages} onLoad={() => setPictures('loaded')} />
          )}
          {cut && <p className="text-sm text-wait">{reading.cut}</p>}
          <Sheet key={pictures} message={message} html={html} pictures={pictures} />
        </div>
      )}
    </Loaded>
  )
}

function PicturesBar({ count, onLoad }: { count: number; onLoad: () => void }) {
  return (
    <div className="flex flex-wrap items-center gap-x-3 gap-y-2 rounded-md bg-idle-soft px-3 py-2 text-sm text-muted">
      <ImageOff size={15} aria-hidden className="shrink-0" />
      <span className="min-w-0 flex-1 basis-60">{reading.picturesWhat}</span>
      <Button size="small" onClick={onLoad}>
        {reading.pictures(count)}
      </Button>
    </div>
  )
}

interface SheetProps {
  message: Message
  html: string
  pictures: 'blocked' | 'loaded'
}

/** Heights of what was shown before, so that nothing moves when it is shown again. */
const heights = new Map<string, number>()
const firstHeightPx = 120

/** Mail is written for white paper: the sheet is light in both themes. */
function Sheet({ message, html, pictures }: SheetProps) {
  const { id } = message
  const frame = useRef<HTMLIFrameElement>(null)
  const [isLoaded, setIsLoaded] = useState(false)
  const [isBroken, setIsBroken] = useState(false)
  const [heightPx, setHeightPx] = useState(heights.get(id) ?? firstHeightPx)
  // biome-ignore lint/correctness/useExhaustiveDependencies: the message's attachments are read when it is shown
  useEffect(() => {
    const { current } = frame
    if (!isLoaded || !current) return
    const sheet = fillSheet(current, html, pictures)
    if (!sheet) return setIsBroken(true)
    current.dataset['shown'] = id
    for (const image of sheet.inlineImages) void showInline(message, image)
    return followHeight(sheet, (px) => {
      heights.set(id, px)
      setHeightPx(px)
    })
  }, [isLoaded, html, pictures, id])
  if (isBroken) return <p className="text-bad">{reading.htmlFailed}</p>
  return (
    <iframe
      ref={frame}
      title={reading.htmlTitle}
      src={pictures === 'loaded' ? '/app/frame?images=1' : '/app/frame'}
      sandbox="allow-same-origin allow-popups allow-popups-to-escape-sandbox"
      referrerPolicy="no-referrer"
      onLoad={() => setIsLoaded(true)}
      style={{ height: heightPx }}
      className="w-full rounded-md border bg-white scheme-light"
    />
  )
}

async function showInline({ id, attachments = [] }: Message, image: HTMLImageElement): Promise<void> {
  const cid = image.dataset['cid']
  const part = attachments.find(({ contentId, scanState }) => contentId === cid && scanState === 'clean')
  const address = part && (await readInlineImage(attachmentPath(id, part.id), part.size))
  if (address) image.src = address
}
