// Schemas of messages: sent mail, received mail, and the details that only received mail has.

import Type from 'typebox'
import { authResults } from '../../base/auth-result.ts'
import { Mailbox } from './mailbox.ts'
import {
  AttachmentIdText,
  component,
  failureCode,
  InboxIdText,
  MessageIdText,
  MetadataView,
  NextCursor,
  nullable,
  oneOf,
  ThreadIdText,
  Time,
  Uuid,
} from './scalars.ts'

export const Purpose = {
  ...oneOf(['transactional', 'marketing', 'unclassified'], 'The kind of mail.'),
  examples: ['transactional'],
}
const scanStates = ['unscanned', 'clean', 'infected', 'failed'] as const

const attachmentExample = {
  id: 'att_0199a1b26d7e8f90a1b2c3d4_1',
  filename: 'terms.pdf',
  contentType: 'application/pdf',
  size: 48213,
  disposition: 'attachment',
  contentId: null,
  sha256: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
  scanState: 'clean',
}

export const Attachment = component(
  'Attachment',
  Type.Object(
    {
      id: AttachmentIdText,
      filename: Type.String({ description: 'Untrusted, for display.' }),
      contentType: Type.String({ description: 'Untrusted, for display.' }),
      size: Type.Integer({ minimum: 0, description: 'Size in bytes.' }),
      disposition: oneOf(['attachment', 'inline'], 'The disposition that the sender set.'),
      contentId: nullable(Type.String({ description: 'Without angle brackets.' })),
      sha256: Type.String({ description: 'SHA-256 of the decoded bytes, in hexadecimal.' }),
      scanState: oneOf([...scanStates], 'Only a clean attachment can be downloaded.'),
    },
    {
      description: 'An attachment of a message.',
      examples: [attachmentExample],
    },
  ),
)

export const AuthenticationResult = {
  ...oneOf<string[]>([...authResults, 'not_evaluated'], 'A result (RFC 8601).'),
  examples: ['pass'],
}

const securityExample = {
  trust: 'untrusted',
  smtp: {
    remoteIp: '203.0.113.9',
    helo: 'mx.example.com',
    tls: { encrypted: true, protocol: 'TLSv1.3', cipher: 'TLS_AES_256_GCM_SHA384' },
  },
  authentication: { spf: 'pass', dkim: 'pass', dmarc: 'pass' },
  spam: { score: 1.4, action: 'no action', symbols: ['R_SPF_ALLOW', 'MIME_GOOD'] },
  attachments: 'clean',
  content: { hiddenText: 187, invisibleCharacters: 14, bidiOverrides: 0, textDiffersFromHtml: false },
}

const InboundSecurity = component(
  'InboundSecurity',
  Type.Object(
    {
      trust: oneOf(['untrusted'], 'Received mail is never trusted.'),
      smtp: Type.Object({
        remoteIp: Type.String({ description: 'The IP address of the sending host.' }),
        helo: Type.String({ description: 'Its name in HELO or EHLO.' }),
        tls: Type.Object({
          encrypted: Type.Boolean(),
          protocol: Type.String({ description: 'For example TLSv1.3; none without TLS.' }),
          cipher: Type.String({ description: 'None without TLS.' }),
        }),
      }),
      authentication: Type.Object({
        spf: { ...AuthenticationResult, description: 'SPF result (RFC 8601).' },
        dkim: { ...AuthenticationResult, description: 'DKIM result (RFC 8601).' },
        dmarc: { ...AuthenticationResult, description: 'DMARC result (RFC 8601).' },
      }),
      listedBy: Type.Optional(
        Type.Array(Type.String({ maxLength: 253 }), {
          maxItems: 8,
          description: 'Configured block lists that listed the sending host. Absent if none did.',
        }),
      ),
      spam: Type.Optional(
        Type.Object(
          {
            score: Type.Number({ description: 'Higher means more likely spam. Can be negative.' }),
            action: Type.String({
              description:
                'The action that Rspamd recommends: no action, add header, rewrite subject, or a custom action.',
            }),
            symbols: Type.Array(Type.String(), {
              description: 'The matched rules, those with the most weight first, at most 200.',
            }),
          },
          {
            description: 'The Rspamd result. Absent if Rspamd is not set up or did not answer in time.',
          },
        ),
      ),
      attachments: oneOf(['none', ...scanStates], 'The worst scan state of its attachments.'),
      content: Type.Optional(
        Type.Object(
          {
            hiddenText: Type.Integer({
              minimum: 0,
              description:
                'Number of HTML characters that are invisible to a person. They are not in `text`.',
            }),
            invisibleCharacters: Type.Integer({
              minimum: 0,
              description: 'Number of zero-width characters removed from the text, such as Unicode tags.',
            }),
            bidiOverrides: Type.Integer({
              minimum: 0,
              description: 'Number of places that override the text direction.',
            }),
            textDiffersFromHtml: Type.Boolean({
              description:
                'True if plain text and HTML differ: one has five or more words that the other lacks.',
            }),
          },
          {
            description:
              'Hidden text in the message. Not a verdict: newsletters hide text too. Absent if the message could not be read, or was stored before this was counted.',
          },
        ),
      ),
    },
    {
      description: 'Security information about a received message.',
      examples: [securityExample],
    },
  ),
)

export const messageExample = {
  id: 'msg_0199a1b23c4d5e6f708192a3',
  inboxId: 'inb_0199a1b23c4d5e6f708192a3',
  threadId: 'thr_0199a1b23c4d5e6f708192a3',
  direction: 'outbound',
  internetMessageId: '<0199a1b23c4d5e6f708192a3@inbox.example.net>',
  inReplyTo: null,
  references: [],
  from: { email: 'calm-otter-52814@inbox.example.net', name: 'Calm Otter' },
  to: [{ email: 'ada@example.com', name: 'Ada Lovelace' }],
  subject: 'Your table for two',
  text: 'Friday at eight is yours.',
  metadata: { booking: 4711 },
  delivery: { submissionId: '0199a1b2-5e6f-7081-92a3-3e4f5a6b7c8d', status: 'submitted', failureCode: null },
  createdAt: '2026-11-21T09:00:00.000Z',
  updatedAt: '2026-11-21T09:00:00.000Z',
  purpose: 'transactional',
}

const receivedExample = {
  ...messageExample,
  id: 'msg_0199a1b26d7e8f90a1b2c3d4',
  direction: 'inbound',
  internetMessageId: '<CAF3b1c9@mail.example.com>',
  inReplyTo: messageExample.internetMessageId,
  references: [messageExample.internetMessageId],
  from: messageExample.to[0]!,
  to: [messageExample.from],
  subject: 'Re: Your table for two',
  text: 'Lovely, thank you.\n\n> Friday at eight is yours.\n',
  extractedText: 'Lovely, thank you.',
  metadata: {},
  delivery: { submissionId: null, status: 'received', failureCode: null },
  createdAt: '2026-11-21T09:12:00.000Z',
  updatedAt: '2026-11-21T09:12:00.000Z',
  attachments: [attachmentExample],
  automatic: false,
  inboundSecurity: securityExample,
  purpose: 'unclassified',
}

export const messageExamples = { sent: messageExample, received: receivedExample }

const Delivery = Type.Object({
  submissionId: nullable(Uuid),
  status: oneOf(
    ['received', 'submitted', 'delivered', 'partially_delivered', 'failed'],
    'Delivery state of the message.',
  ),
  failureCode,
})

export const Message = component(
  'Message',
  Type.Object(
    {
      id: MessageIdText,
      inboxId: InboxIdText,
      threadId: ThreadIdText,
      direction: oneOf(['inbound', 'outbound'], 'Received or sent.'),
      internetMessageId: Type.String({ description: 'The Message-ID, in angle brackets.' }),
      inReplyTo: nullable(Type.String({ description: 'The Message-ID of the message that it answers.' })),
      references: Type.Array(Type.String(), {
        description: 'The Message-IDs of the conversation, oldest first.',
      }),
      from: Mailbox.ref,
      to: Type.Array(Mailbox.ref),
      cc: Type.Optional(Type.Array(Mailbox.ref, { description: 'Absent if empty.' })),
      bcc: Type.Optional(
        Type.Array(Mailbox.ref, {
          description:
            'Outbound only, absent if empty: the hidden recipients, which the mail itself does not name.',
        }),
      ),
      replyTo: Type.Optional(Mailbox.ref),
      subject: Type.String(),
      text: Type.String({
        description: 'Plain text, or the visible text of mail that has only HTML.',
      }),
      html: Type.Optional(Type.String({ description: 'Untrusted if the message is inbound.' })),
      extractedText: Type.Optional(
        Type.String({
          description:
            'Inbound: the new text without the quoted history. Inline answers keep the quoted lines that they answer. Empty if the text is over 256 KiB.',
        }),
      ),
      truncated: Type.Optional(
        Type.Boolean({
          description: 'True if the texts are over 16 MiB together. Only their beginnings are returned.',
        }),
      ),
      metadata: MetadataView,
      delivery: Delivery,
      createdAt: Time,
      updatedAt: Time,
      attachments: Type.Optional(
        Type.Array(Attachment.ref, {
          description: 'On every inbound message, and on outbound messages with attachments.',
        }),
      ),
      automatic: Type.Optional(
        Type.Boolean({
          description:
            'Inbound: true if a program wrote the message. Signs are its header fields (`Auto-Submitted`, `Precedence`, `List-Id`, `List-Unsubscribe`, `Feedback-ID`, `X-Auto-Response-Suppress`), an empty return path, or a no-reply address. Do not answer automatically: that could cause an endless loop.',
        }),
      ),
      inboundSecurity: Type.Optional(InboundSecurity.ref),
      purpose: Purpose,
    },
    { description: 'A message, sent or received.', examples: Object.values(messageExamples) },
  ),
)

export const MessageList = component(
  'MessageList',
  Type.Object(
    { messages: Type.Array(Message.ref), nextCursor: NextCursor },
    {
      description: 'Messages, newest first. With `after`, oldest first.',
      examples: [{ messages: [messageExample], nextCursor: null }],
    },
  ),
)

export const MessageHeader = component(
  'MessageHeader',
  Type.Object(
    {
      headers: Type.Array(
        Type.Object({
          name: Type.String({ description: 'The name as written. Names are case-insensitive.' }),
          value: Type.String({
            description: 'The decoded value on one line, without control characters. The first 256 KiB.',
          }),
          raw: Type.String({
            description:
              'The whole field as received, with its line folds. If it is not UTF-8, each byte is one character, U+0000 to U+00FF. A NUL is U+FFFD.',
          }),
        }),
        { description: 'The fields in order. The trace fields of this service come first.' },
      ),
      truncated: Type.Optional(
        Type.Boolean({
          description: 'True if there are more than 10,000 fields or 1 MiB. Only the first are returned.',
        }),
      ),
    },
    {
      description: 'The header fields of a received message. Untrusted, except for those of this service.',
      examples: [
        {
          headers: [
            { name: 'Return-Path', value: '<ada@example.com>', raw: 'Return-Path: <ada@example.com>' },
            {
              name: 'Subject',
              value: 'Re: Tisch für zwei',
              raw: 'Subject: Re: Tisch =?utf-8?q?f=C3=BCr?= zwei',
            },
          ],
        },
      ],
    },
  ),
)

export const sourceExample = [
  'Return-Path: <ada@example.com>',
  'Delivered-To: calm-otter-52814@inbox.example.net',
  'From: Ada Lovelace <ada@example.com>',
  'To: calm-otter-52814@inbox.example.net',
  'Subject: Re: Your table for two',
  '',
  'Lovely, thank you.',
  '',
].join('\r\n')

export const messageComponents = [Attachment, InboundSecurity, Message, MessageList, MessageHeader]
