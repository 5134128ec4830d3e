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

export const purposes = ['transactional', 'marketing', 'unclassified'] as const
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
      size: Type.Integer({ minimum: 0, description: 'Bytes.' }),
      disposition: oneOf(['attachment', 'inline'], 'How the sender meant it.'),
      contentId: nullable(Type.String({ description: 'Without angle brackets.' })),
      sha256: Type.String({ description: 'Of the decoded bytes, hexadecimal.' }),
      scanState: oneOf([...scanStates], 'Only a clean attachment can be downloaded.'),
    },
    {
      description: 'What came with a message.',
      examples: [attachmentExample],
    },
  ),
)

const authenticationResults = [...authResults, 'not_evaluated']

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
        remoteIp: Type.String({ description: 'Where it came from.' }),
        helo: Type.String({ description: 'What that said it was.' }),
        tls: Type.Object({
          encrypted: Type.Boolean(),
          protocol: Type.String({ description: 'Such as TLSv1.3; none without TLS.' }),
          cipher: Type.String({ description: 'None without TLS.' }),
        }),
      }),
      authentication: Type.Object({
        spf: oneOf(authenticationResults, 'RFC 8601 result of SPF.'),
        dkim: oneOf(authenticationResults, 'RFC 8601 result of DKIM.'),
        dmarc: oneOf(authenticationResults, 'RFC 8601 result of DMARC.'),
      }),
      listedBy: Type.Optional(
        Type.Array(Type.String({ maxLength: 253 }), {
          maxItems: 8,
          description:
            'Block lists that the host was on which it came from, of those that the operator has asked for this. Absent where it was on none.',
        }),
      ),
      spam: Type.Optional(
        Type.Object(
          {
            score: Type.Number({ description: 'The more, the likelier spam; it may be negative.' }),
            action: Type.String({
              description:
                'What Rspamd wants done: no action, add header, rewrite subject, or one of its operator.',
            }),
            symbols: Type.Array(Type.String(), {
              description: 'The rules that matched, those that weigh most first, at most 200.',
            }),
          },
          {
            description: 'What Rspamd made of it. Absent where it is not set up, or did not answer in time.',
          },
        ),
      ),
      attachments: oneOf(['none', ...scanStates], 'The worst state of its attachments.'),
      content: Type.Optional(
        Type.Object(
          {
            hiddenText: Type.Integer({
              minimum: 0,
              description: 'Characters of the HTML that a person does not see; they are not in `text`.',
            }),
            invisibleCharacters: Type.Integer({
              minimum: 0,
              description:
                'Characters without width that were taken out of the text, such as tags of Unicode.',
            }),
            bidiOverrides: Type.Integer({
              minimum: 0,
              description: 'Places where the direction of the text is overridden.',
            }),
            textDiffersFromHtml: Type.Boolean({
              description:
                'The mail has plain text and HTML, and one of them has five words or more that the other lacks.',
            }),
          },
          {
            description:
              'Facts about its text, no verdict: newsletters hide text too. Absent if the message could not be read, or was filed before this was counted.',
          },
        ),
      ),
    },
    {
      description: 'What is known about a received message.',
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
    'Where the message stands.',
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
      inReplyTo: nullable(Type.String({ description: 'The Message-ID of what it answers.' })),
      references: Type.Array(Type.String(), {
        description: 'The Message-IDs of the conversation, oldest first.',
      }),
      from: Mailbox.ref,
      to: Type.Array(Mailbox.ref),
      cc: Type.Optional(Type.Array(Mailbox.ref, { description: 'Where there is any.' })),
      bcc: Type.Optional(
        Type.Array(Mailbox.ref, {
          description:
            'Outbound, where there is any: the hidden recipients, whom the mail itself does not name.',
        }),
      ),
      replyTo: Type.Optional(Mailbox.ref),
      subject: Type.String(),
      text: Type.String({ description: 'Of mail that has only HTML, what that shows.' }),
      html: Type.Optional(Type.String({ description: 'Untrusted where the message is inbound.' })),
      extractedText: Type.Optional(
        Type.String({
          description:
            'Inbound: the new text without the quoted history. Answers between quoted lines keep the lines that they answer. Empty where the text is over 256 KiB.',
        }),
      ),
      truncated: Type.Optional(
        Type.Boolean({
          description: 'True where the texts are over 16 MiB together: these are the beginnings of them.',
        }),
      ),
      metadata: MetadataView,
      delivery: Delivery,
      createdAt: Time,
      updatedAt: Time,
      attachments: Type.Optional(
        Type.Array(Attachment.ref, {
          description: 'On every inbound message, and on outbound ones that have any.',
        }),
      ),
      automatic: Type.Optional(
        Type.Boolean({
          description:
            'Inbound: a program wrote it, as its header fields say (`Auto-Submitted`, `Precedence`, `List-Id`, `List-Unsubscribe`, `Feedback-ID`, `X-Auto-Response-Suppress`), or its return path is empty, or it comes from a no-reply address. Answering it could go on for ever.',
        }),
      ),
      inboundSecurity: Type.Optional(InboundSecurity.ref),
      purpose: oneOf([...purposes], 'What kind of mail it is.'),
    },
    { description: 'A message, sent or received.', examples: Object.values(messageExamples) },
  ),
)

export const MessageList = component(
  'MessageList',
  Type.Object(
    { messages: Type.Array(Message.ref), nextCursor: NextCursor },
    {
      description: 'Messages, newest first; oldest first where they are those that follow another.',
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
          name: Type.String({ description: 'As it was written; names compare without case.' }),
          value: Type.String({
            description:
              'What it says: on one line, with encoded words decoded, without control characters. The first 256 KiB.',
          }),
          raw: Type.String({
            description:
              'The whole field as it stands, with its folds. What is not UTF-8 is one character for each byte, U+0000 to U+00FF, and a NUL is U+FFFD.',
          }),
        }),
        { description: 'In their order: what this service wrote above the message first.' },
      ),
      truncated: Type.Optional(
        Type.Boolean({
          description: 'True where there are more than 10,000 fields, or 1 MiB: these are the first.',
        }),
      ),
    },
    {
      description:
        'The header fields of a received message. Untrusted, but for those that this service wrote.',
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
