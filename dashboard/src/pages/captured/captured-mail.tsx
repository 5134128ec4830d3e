// One captured mail as its recipient would see it: as HTML, as text, and as it was sent.

import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { Download, Paperclip } from 'lucide-react'
import { api, read } from '../../api/client.ts'
import { writtenBytes } from '../../parts/bytes.ts'
import { DefinitionList } from '../../parts/definition-list.tsx'
import { DownloadLink } from '../../parts/download-link.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { MailSource } from '../../parts/mail/mail-source.tsx'
import { MailViews } from '../../parts/mail/mail-views.tsx'
import { Scrolled } from '../../parts/scrolled.tsx'
import { Time } from '../../parts/time.tsx'
import { captured } from '../../texts/captured.ts'
import { Column } from '../mail/column.tsx'
import { type CapturedMail, capturedMailQuery } from './queries.ts'

export function CapturedMailView({ capturedId }: { capturedId: string }) {
  const query = useQuery(capturedMailQuery(capturedId))
  const navigate = useNavigate()
  const download = (
    <DownloadLink href={sourceOf(capturedId)} icon={Download} size="small">
      {captured.download}
    </DownloadLink>
  )
  return (
    <Column
      title={query.data ? query.data.subject || captured.noSubject : captured.one}
      actions={download}
      className="flex-1"
      onBack={() => void navigate({ to: '/captured' })}
    >
      <Scrolled
        label={captured.letter}
        className="h-full overflow-y-auto px-4 py-4 -outline-offset-2 sm:px-6"
      >
        <Loaded query={query}>{(mail) => <Letter mail={mail} />}</Loaded>
      </Scrolled>
    </Column>
  )
}

function sourceOf(capturedId: string): string {
  return `/app/v1/captured/${capturedId}/source`
}

function Letter({ mail }: { mail: CapturedMail }) {
  const { id, html, remoteImages, text } = mail
  return (
    <div className="grid min-w-0 grid-cols-[minmax(0,1fr)] gap-5">
      <Envelope mail={mail} />
      {mail.attachments.length > 0 && <Attachments mail={mail} />}
      <MailViews
        id={id}
        html={html}
        remoteImages={remoteImages}
        text={text}
        source={<Source capturedId={id} />}
      />
    </div>
  )
}

function Source({ capturedId }: { capturedId: string }) {
  const params = { path: { capturedId } }
  return (
    <MailSource
      id={capturedId}
      href={sourceOf(capturedId)}
      open={(signal) =>
        read<unknown>(api.GET('/v1/captured/{capturedId}/source', { params, parseAs: 'stream', signal }))
      }
    />
  )
}

type Mailbox = CapturedMail['to'][number]

function written({ email, name }: { email?: string; name?: string | undefined }): string {
  return name ? `${name} <${email}>` : (email ?? '')
}

function Envelope({ mail }: { mail: CapturedMail }) {
  const { from, to, cc, sender, recipients, capturedAt, sizeBytes } = mail
  const list = (mailboxes: readonly Mailbox[]) => mailboxes.map(written).join(', ')
  return (
    <DefinitionList
      items={[
        [captured.from, from ? written(from) : captured.unknownFrom],
        ...(to.length > 0 ? [[captured.to, list(to)] as const] : []),
        ...(cc.length > 0 ? [[captured.cc, list(cc)] as const] : []),
        [
          captured.envelope,
          <span key="envelope" className="wrap-anywhere text-muted">
            {captured.envelopeOf(sender || captured.noSender, recipients.join(', '))}
          </span>,
        ],
        [
          captured.taken,
          <span key="taken" className="text-muted">
            <Time value={capturedAt} />, {writtenBytes(sizeBytes)}
          </span>,
        ],
      ]}
    />
  )
}

function Attachments({ mail: { attachments } }: { mail: CapturedMail }) {
  return (
    <section aria-label={captured.attachments}>
      <ul className="flex flex-wrap gap-2">
        {attachments.map(({ filename, contentType, size }, index) => (
          <li
            // biome-ignore lint/suspicious/noArrayIndexKey: several files may have the same name, and their order is fixed
            key={index}
            title={`${contentType}. ${captured.attachmentsHint}`}
            className="flex max-w-full items-center gap-2 rounded-md border px-2.5 py-1 text-sm"
          >
            <Paperclip size={14} aria-hidden className="shrink-0 text-faint" />
            <span className="min-w-0 truncate">{filename || captured.unnamed}</span>
            <span className="numbers whitespace-nowrap text-faint">{writtenBytes(size)}</span>
          </li>
        ))}
      </ul>
    </section>
  )
}
