// A message as HTML, sanitized by the service and again in the frame that shows it.

import { useQuery } from '@tanstack/react-query'
import { Loaded } from '../../../parts/loaded.tsx'
import { MailFrame } from '../../../parts/mail/mail-frame.tsx'
import { reading } from '../../../texts/reading.ts'
import { attachmentPath } from '../attachments.tsx'
import { type Message, pageQuery } from '../mail-queries.ts'
import { readInlineImage } from './inline-image.ts'

export function HtmlBody({ message }: { message: Message }) {
  const query = useQuery(pageQuery(message.id))
  return (
    <Loaded query={query}>
      {({ html, remoteImages, cut }) => (
        <div className="grid min-w-0 gap-3">
          {cut && <p className="text-sm text-wait">{reading.cut}</p>}
          <MailFrame
            key={message.id}
            id={message.id}
            html={html}
            remoteImages={remoteImages}
            showInline={(image) => void showInline(message, image)}
          />
        </div>
      )}
    </Loaded>
  )
}

async function showInline({ id, attachments = [] }: Message, image: HTMLImageElement): Promise<void> {
  const cid = image.dataset['cid']
  const part = attachments.find(({ contentId, scanState }) => contentId === cid && scanState === 'clean')
  const address = part && (await readInlineImage(attachmentPath(id, part.id), part.size))
  if (address) image.src = address
}
