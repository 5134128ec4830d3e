// Mail for the operator as JSON, for the desk and the command line.
import type { OperatorMail, ReadOperatorMail } from '../../flow/reading/operator-mail.ts'
import type { Mailbox } from '../../mail/address.ts'

export function presentHead({ rawId: _, from, subject, ...mail }: OperatorMail) {
  return { ...mail, from: from && writeMailbox(from), subject: subject || null }
}

/** Formats `Ann Bee <ann@example.org>` for people. */
export function writeMailbox({ email, name }: Mailbox): string {
  if (!name) return email
  // RFC 5322 3.2.4: without quotes, an address within the name would look like the author's.
  const phrase = /[<>@,;:"\\()[\]]/.test(name) ? `"${name.replaceAll(/["\\]/g, '\\$&')}"` : name
  return `${phrase} <${email}>`
}

export function presentWhole({ mail, header, content }: ReadOperatorMail) {
  return {
    ...presentHead(mail),
    headers: header.fields,
    isHeaderCut: header.isCut,
    text: content.text,
    hasHtml: content.html === 'beside',
    note: content.note,
    attachments: content.attachments.map(({ filename, contentType, sizeBytes }) => ({
      filename,
      contentType,
      sizeBytes,
    })),
  }
}
