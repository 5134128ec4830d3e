// Schemas of sends and replies, and of the answer that confirms that they are stored on disk.
import Type from 'typebox'
import { GivenMailbox } from './mailbox.ts'
import { Message, messageExample } from './message.ts'
import { component, MessageIdText, MetadataGiven, oneOf, patterned } from './scalars.ts'
import { Submission, submissionExample } from './submission.ts'

const attachmentExample = { filename: 'terms.txt', contentType: 'text/plain', content: 'VGVybXMu' }

const GivenAttachment = component(
  'GivenAttachment',
  Type.Object(
    {
      filename: patterned('filename', {
        minLength: 1,
        maxLength: 255,
        description: 'A file name without a folder.',
      }),
      contentType: patterned('contentType', {
        maxLength: 255,
        description: 'The media type, such as application/pdf.',
      }),
      content: Type.String({ contentEncoding: 'base64', description: 'Base64 (RFC 4648 4), with padding.' }),
      contentId: Type.Optional(
        patterned('contentId', {
          minLength: 1,
          maxLength: 255,
          description: 'Makes the file an inline part that the HTML can refer to.',
        }),
      ),
    },
    {
      additionalProperties: false,
      description: 'A file to send.',
      examples: [attachmentExample],
    },
  ),
)

const recipients = { maxItems: 1000, examples: [[{ email: 'ada@example.com' }]] }
const text = Type.String({ description: 'Plain text. Default: made from `html`.' })
const html = Type.String({ description: 'The HTML content.' })
export const GivenPurpose = {
  ...oneOf(['transactional', 'marketing'], 'Marketing is refused until consent controls exist.'),
  examples: ['transactional'],
}
const bodies = {
  text: Type.Optional(text),
  html: Type.Optional(html),
  attachments: Type.Optional(
    Type.Array(GivenAttachment.ref, {
      maxItems: 100,
      description: 'Files to send.',
      examples: [[attachmentExample]],
    }),
  ),
  metadata: Type.Optional(MetadataGiven),
  purpose: Type.Optional(GivenPurpose),
}
/**
 * Requires `text`, `html` or both. The second branch excludes `text`, so that exactly one branch matches and `oneOf` can
 * be used. Generated types are then the object with its required fields. With `anyOf` they would be either branch alone.
 * Pages that show the schema show all fields.
 */
const textOrHtml = {
  oneOf: [
    { required: ['text'], properties: { text } },
    { required: ['html'], properties: { html }, not: { required: ['text'], properties: { text: {} } } },
  ],
}

const friday = {
  to: [{ email: 'ada@example.com', name: 'Ada Lovelace' }],
  subject: 'Your table for two',
  text: 'Friday at eight is yours.',
  metadata: { booking: 4711 },
  purpose: 'transactional',
}

export const newMessageExamples = {
  text: friday,
  'html with an attachment': {
    ...friday,
    cc: [{ email: 'charles@example.com' }],
    replyTo: { email: 'tables@example.org', name: 'The Green Table' },
    html: '<p>Friday at eight is <b>yours</b>.</p>',
    attachments: [attachmentExample],
  },
}

export const NewMessage = component(
  'NewMessage',
  Type.Object(
    {
      to: Type.Array(GivenMailbox.ref, { minItems: 1, ...recipients }),
      cc: Type.Optional(Type.Array(GivenMailbox.ref, recipients)),
      bcc: Type.Optional(Type.Array(GivenMailbox.ref, { ...recipients, description: 'Hidden recipients.' })),
      replyTo: Type.Optional(GivenMailbox.ref),
      subject: patterned('subject', {
        minLength: 1,
        maxLength: 998,
        description: 'One line with at least one visible character.',
      }),
      ...bodies,
    },
    {
      ...textOrHtml,
      additionalProperties: false,
      description: 'A message that starts a conversation. `text` or `html` is required.',
      examples: Object.values(newMessageExamples),
    },
  ),
)

export const newReplyExamples = {
  'to the sender': { targetMessageId: messageExample.id, text: 'See you on Friday.' },
  'to everyone': { targetMessageId: messageExample.id, replyAll: true, html: '<p>See you on Friday.</p>' },
}

export const NewReply = component(
  'NewReply',
  Type.Object(
    {
      targetMessageId: MessageIdText,
      replyAll: Type.Optional(Type.Boolean({ description: 'Replies to all recipients. Default: false.' })),
      ...bodies,
    },
    {
      ...textOrHtml,
      additionalProperties: false,
      description: 'A reply to a message of the thread. `text` or `html` is required.',
      examples: Object.values(newReplyExamples),
    },
  ),
)

export const Acceptance = component(
  'Acceptance',
  Type.Object(
    {
      message: Message.ref,
      submission: Submission.ref,
      replayed: Type.Boolean({
        description: 'True if the idempotency key was used before. This is the earlier result.',
      }),
    },
    {
      description: 'The message is on disk and will be delivered.',
      examples: [{ message: messageExample, submission: submissionExample, replayed: false }],
    },
  ),
)

const headerValue = (description: string) =>
  Type.Optional(patterned('headerValue', { maxLength: 998, description }))

export const NewSend = component(
  'NewSend',
  Type.Object(
    {
      from: GivenMailbox.ref,
      to: Type.Array(GivenMailbox.ref, { minItems: 1, ...recipients }),
      subject: patterned('subject', {
        minLength: 1,
        maxLength: 998,
        description: 'One line with at least one visible character.',
      }),
      text: bodies.text,
      html: bodies.html,
      replyTo: Type.Optional(GivenMailbox.ref),
      headers: Type.Optional(
        Type.Object(
          {
            'x-campaign': headerValue('The name of the campaign.'),
            'x-campaign-id': headerValue("The campaign's id."),
            'x-entity-ref-id': headerValue('Prevents clients from grouping mails with the same subject.'),
          },
          { additionalProperties: false, maxProperties: 3, description: 'Additional header fields.' },
        ),
      ),
      metadata: bodies.metadata,
      purpose: bodies.purpose,
    },
    {
      ...textOrHtml,
      additionalProperties: false,
      description:
        'A message sent through a domain. The domain of `from` must be verified for sending. `text` or `html` is required.',
      examples: [
        {
          from: { email: 'tables@example.org', name: 'The Green Table' },
          to: [{ email: 'ada@example.com', name: 'Ada Lovelace' }],
          subject: 'Your table for two',
          text: 'Friday at eight is yours.',
          headers: { 'x-campaign': 'confirmations' },
        },
      ],
    },
  ),
)

export const SendAcceptance = component(
  'SendAcceptance',
  Type.Object(
    { ...Submission.definition.properties, replayed: Acceptance.definition.properties.replayed },
    {
      description: 'The submission is on disk and will be delivered.',
      examples: [
        {
          ...submissionExample,
          from: { email: 'tables@example.org', name: 'The Green Table' },
          replayed: false,
        },
      ],
    },
  ),
)

export const sendComponents = [GivenAttachment, NewMessage, NewReply, Acceptance, NewSend, SendAcceptance]
