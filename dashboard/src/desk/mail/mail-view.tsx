// One mail of the operator's: its envelope, its text, its header; nothing of it runs or loads anything here.

import { useParams } from '@tanstack/react-router'
import { Download } from 'lucide-react'
import type { ReactNode } from 'react'
import { Card } from '../../parts/card.tsx'
import { DefinitionList } from '../../parts/definition-list.tsx'
import { Page } from '../../parts/page.tsx'
import { exactTime } from '../../parts/time.tsx'
import { desk } from '../../texts/desk.ts'
import type { Answer } from '../client.ts'
import { LoadedPage } from '../loaded-page.tsx'
import { type MailKind, useMail } from '../queries.ts'
import { writtenBytes } from '../written.ts'

type Mail = Answer<'/mail/{kind}/{mailId}'>

const { mail: words } = desk
const crumbs = [{ label: desk.pages.mail, to: '/mail' }]

export function MailView() {
  const { kind, mailId } = useParams({ strict: false }) as { kind: MailKind; mailId: string }
  return (
    <LoadedPage query={useMail(kind, mailId)} title={words.title} crumbs={crumbs}>
      {(mail) => (
        <Page
          title={mail.subject || words.noSubject}
          crumbs={crumbs}
          actions={<Source href={`/desk/v1/mail/${kind}/${mailId}/source`} />}
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

function Source({ href }: { href: string }) {
  return (
    <a
      href={href}
      download
      className="inline-flex h-9 items-center gap-2 rounded-md border border-line-strong bg-surface px-3.5 font-medium hover:bg-hover"
    >
      <Download size={15} aria-hidden />
      {words.source}
    </a>
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
          [words.size, writtenBytes(sizeBytes)],
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
        <Scrolled label={words.textOf}>
          <pre className="font-sans whitespace-pre-wrap break-words">{text}</pre>
        </Scrolled>
      )}
    </Card>
  )
}

/** What is long scrolls by itself, by keyboard too. */
function Scrolled({ label, children }: { label: string; children: ReactNode }) {
  return (
    <section
      aria-label={label}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
      tabIndex={0}
      className="max-h-[60vh] overflow-auto"
    >
      {children}
    </section>
  )
}

function Attachments({ attachments }: Pick<Mail, 'attachments'>) {
  return (
    <Card title={words.attachments}>
      <ul className="grid gap-1">
        {attachments.map(({ filename, contentType, sizeBytes }, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: two may have one name, and their order never changes
          <li key={index}>
            {filename}{' '}
            <span className="text-sm text-faint">
              {contentType} · {writtenBytes(sizeBytes)}
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
      <Scrolled label={words.headersOf}>
        <dl className="grid gap-x-4 gap-y-1.5 text-sm sm:grid-cols-[180px_minmax(0,1fr)]">
          {headers.map(({ name, value }, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: fields stand in their order, and some of them twice
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
