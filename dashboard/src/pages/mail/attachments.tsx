// The files of a message: a download if the scan found them clean, otherwise the reason why not.
import { Download, Paperclip } from 'lucide-react'
import { StateBadge } from '../../parts/badge.tsx'
import { writtenBytes } from '../../parts/bytes.ts'
import { reading } from '../../texts/reading.ts'
import type { Message } from './mail-queries.ts'

type Attachment = NonNullable<Message['attachments']>[number]

/** The path of a file's content. */
export function attachmentPath(messageId: string, attachmentId: string): string {
  return `/app/v1/messages/${messageId}/attachments/${attachmentId}`
}

export function Attachments({ message: { id, attachments = [] } }: { message: Message }) {
  if (attachments.length === 0) return null
  return (
    <section className="grid gap-2">
      <h3 className="text-sm font-medium text-muted">{reading.attachments(attachments.length)}</h3>
      <ul className="grid gap-2">
        {attachments.map((attachment) => (
          <FileLine key={attachment.id} messageId={id} attachment={attachment} />
        ))}
      </ul>
    </section>
  )
}

function FileLine({ messageId, attachment }: { messageId: string; attachment: Attachment }) {
  const { id, filename, contentType, size, disposition, scanState } = attachment
  const facts = [writtenBytes(size), contentType, ...(disposition === 'inline' ? [reading.inline] : [])]
  return (
    <li className="flex min-w-0 flex-wrap items-center gap-x-3 gap-y-1 rounded-md border px-3 py-2">
      <Paperclip size={15} aria-hidden className="shrink-0 text-faint" />
      <span className="min-w-0 flex-1 basis-40">
        <span className="block truncate font-medium" title={filename}>
          {filename}
        </span>
        <span className="block truncate text-sm text-faint">{facts.join(' · ')}</span>
        {scanState !== 'clean' && <span className="block text-sm text-muted">{reading.scan[scanState]}</span>}
      </span>
      <StateBadge state={scanState} />
      {scanState === 'clean' && (
        <a
          href={attachmentPath(messageId, id)}
          download={filename}
          aria-label={reading.downloadOf(filename)}
          title={reading.downloadOf(filename)}
          className="grid size-8 place-items-center rounded-md text-muted hover:bg-hover hover:text-ink"
        >
          <Download size={16} aria-hidden />
        </a>
      )}
    </li>
  )
}
