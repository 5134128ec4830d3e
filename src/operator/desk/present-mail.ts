// Mail for the operator as the desk and the command line write it in JSON.
import type { OperatorMail, ReadOperatorMail } from '../../flow/reading/operator-mail.ts'

export function presentHead({ at, rawId: _, ...mail }: OperatorMail) {
  return { ...mail, at: at.toISOString() }
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
