// One mail of the operator's, with envelope, text and header, of which nothing runs or loads anything here.

import { useParams } from '@tanstack/react-router'
import { Download } from 'lucide-react'
import { binaryBytes } from '../../parts/bytes.ts'
import { Card } from '../../parts/card.tsx'
import { DefinitionList } from '../../parts/definition-list.tsx'
import { DownloadLink } from '../../parts/download-link.tsx'
import { LoadedPage } from '../../parts/loaded.tsx'
import { Page } from '../../parts/page.tsx'
import { Scrolled } from '../../parts/scrolled.tsx'
import { exactTime } from '../../parts/time.tsx'
import { desk } from '../../texts/desk.ts'
import type { Answer } from '../client.ts'
import { type MailKind, useMail } from '../queries.ts'

type Mail = Answer<'/mail/{kind}/{mailId}'>

const { mail: words } = desk
const crumbs = [{ label: desk.pages.mail, to: '/mail' }]
const tall = 'max-h-[60vh] overflow-auto'

export function MailView() {
  const { kind, mailId } = useParams({ strict: false }) as { kind: MailKind; mailId: string }
  return (
    <LoadedPage query={useMail(kind, mailId)} title={words.title} crumbs={crumbs}>
      {(mail) => (
        <Page
          title={mail.subject || words.noSubject}
          crumbs={crumbs}
          actions={
            <DownloadLink href={`/desk/v1/mail/${kind}/${mailId}/source`} icon={Download}>
              {words.source}
            </DownloadLink>
          }
        >
          <div className="grid gap-5">
            <Envelope mail={mail} />
            <Text mail={mail} />
            {mail.attachments.length > 0 && <Attachments attachments={mail.attachments} />}
            <Header mail={mail} />
          </div>
        </Page>
      )}
    </LoadedPage>
  )
}

function Envelope({ mail: { from, sender, recipients, at, sizeBytes } }: { mail: Mail }) {
  return (
    <Card>
      <DefinitionList
        items={[
          [words.from, from ?? desk.none],
          [words.envelope, `${sender || words.noSender} → ${recipients.join(', ')}`],
          [words.at, exactTime(at)],
          [words.size, binaryBytes(sizeBytes)],
        ]}
      />
    </Card>
  )
}

function Text({ mail: { text, hasHtml, note } }: { mail: Mail }) {
  const lead = [note, hasHtml ? words.ofHtml : null].filter(Boolean).join(' · ')
  return (
    <Card title={words.text} lead={lead}>
      {text.trim() === '' ? (
        <p className="text-muted">{words.textNone}</p>
      ) : (
        <Scrolled label={words.textOf} className={tall}>
          <pre className="font-sans whitespace-pre-wrap break-words">{text}</pre>
        </Scrolled>
      )}
    </Card>
  )
}

function Attachments({ attachments }: Pick<Mail, 'attachments'>) {
  return (
    <Card title={words.attachments}>
      <ul className="grid gap-1">
        {attachments.map(({ filename, contentType, sizeBytes }, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: two files may have the same name, and their order never changes
          <li key={index}>
            {filename}{' '}
            <span className="text-sm text-faint">
              {contentType} · {binaryBytes(sizeBytes)}
            </span>
          </li>
        ))}
      </ul>
    </Card>
  )
}

function Header({ mail: { headers, isHeaderCut } }: { mail: Mail }) {
  return (
    <Card title={words.headers} lead={isHeaderCut ? words.headersCut : null}>
      <Scrolled label={words.headersOf} className={tall}>
        <dl className="grid gap-x-4 gap-y-1.5 text-sm sm:grid-cols-[180px_minmax(0,1fr)]">
          {headers.map(({ name, value }, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: the fields keep their order, and some occur twice
            <div key={index} className="contents">
              <dt className="font-medium break-words">{name}</dt>
              <dd className="mb-1 break-all text-muted sm:mb-0">{value}</dd>
            </div>
          ))}
        </dl>
      </Scrolled>
    </Card>
  )
}
