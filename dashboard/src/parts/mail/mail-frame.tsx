// The HTML of a mail in a frame that runs and loads nothing by itself; remote pictures load on a click.

import { ImageOff } from 'lucide-react'
import { useEffect, useEffectEvent, useRef, useState } from 'react'
import { reading } from '../../texts/reading.ts'
import { Button } from '../form/button.tsx'
import { fillSheet, followHeight } from './mail-sheet.ts'

interface MailFrameProps {
  /** A stable name of the content, under which its height is remembered. */
  id: string
  /** The HTML as sanitized by the service. */
  html: string
  /** The number of pictures that would load from other servers. */
  remoteImages: number
  /** Fills in a picture that is part of the mail. */
  showInline?: (image: HTMLImageElement) => void
}

type Pictures = 'blocked' | 'loaded'

export function MailFrame({ remoteImages, ...sheet }: MailFrameProps) {
  const [pictures, setPictures] = useState<Pictures>('blocked')
  return (
    <>
      {remoteImages > 0 && pictures === 'blocked' && (
        <PicturesBar count={remoteImages} onLoad={() => setPictures('loaded')} />
      )}
      <Sheet key={pictures} {...sheet} pictures={pictures} />
    </>
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

/** Heights of earlier content, so that the page does not shift when it is shown again. */
const heights = new Map<string, number>()
const firstHeightPx = 120

/** Mail is written for white paper, so the sheet is light in both themes. */
function Sheet({
  id,
  html,
  pictures,
  showInline = () => {},
}: Omit<MailFrameProps, 'remoteImages'> & { pictures: Pictures }) {
  const frame = useRef<HTMLIFrameElement>(null)
  const [isLoaded, setIsLoaded] = useState(false)
  const [isBroken, setIsBroken] = useState(false)
  const [heightPx, setHeightPx] = useState(heights.get(id) ?? firstHeightPx)
  const inline = useEffectEvent(showInline)
  useEffect(() => {
    const { current } = frame
    if (!isLoaded || !current) return
    const sheet = fillSheet(current, html, pictures)
    if (!sheet) return setIsBroken(true)
    current.dataset['shown'] = id
    for (const image of sheet.inlineImages) inline(image)
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
