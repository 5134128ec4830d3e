// Messages as they are shown: what was sent, what was received, and what is known about the latter.
import Type from 'typebox'
import { Mailbox } from './mailbox.ts'
import {
  AttachmentIdText,
  component,
  InboxIdText,
  MessageIdText,
  MetadataShown,
  nullable,
  oneOf,
  ThreadIdText,
  Time,
  Uuid,
} from './scalars.ts'

export const purposes = ['transactional', 'marketing', 'unclassified'] as const
const scanStates = ['unscanned', 'clean', 'infected', 'failed'] as const

const Attachment = component(
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
      examples: [
        {
          id: 'att_0199a1b23c4d5e6f708192a3_1',
          filename: 'terms.pdf',
          contentType: 'application/pdf',
          size: 48213,
          disposition: 'attachment',
          contentId: null,
          sha256: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
          scanState: 'unscanned',
        },
      ],
    },
  ),
)

const authenticationResults = [
  ...['pass', 'fail', 'softfail', 'neutral', 'none', 'policy', 'temperror', 'permerror', 'not_evaluated'],
]

const InboundSecurity = component(
  'InboundSecurity',
  Type.Object(
    {
      trust: oneOf(['untrusted'], 'Received mail is never trusted.'),
      smtp: Type.Object({
        remoteIp: Type.String(),
        helo: Type.String(),
        tls: Type.Object({ encrypted: Type.Boolean(), protocol: Type.String(), cipher: Type.String() }),
      }),
      authentication: Type.Object({
        spf: oneOf(authenticationResults, 'RFC 8601 result of SPF.'),
        dkim: oneOf(authenticationResults, 'RFC 8601 result of DKIM.'),
        dmarc: oneOf(authenticationResults, 'RFC 8601 result of DMARC.'),
      }),
      attachments: oneOf(['none', ...scanStates], 'The worst state of its attachments.'),
    },
    {
      description: 'What is known about a received message.',
      examples: [
        {
          trust: 'untrusted',
          smtp: {
            remoteIp: '203.0.113.9',
            helo: 'mx.example.com',
            tls: { encrypted: true, protocol: 'TLSv1.3', cipher: 'TLS_AES_256_GCM_SHA384' },
          },
          authentication: { spf: 'pass', dkim: 'pass', dmarc: 'pass' },
          attachments: 'none',
        },
      ],
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

const Delivery = Type.Object({
  submissionId: nullable(Uuid),
  status: oneOf(
    ['received', 'submitted', 'delivered', 'partially_delivered', 'failed'],
    'Where the message stands.',
  ),
  failureCode: nullable(Type.String()),
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
      inReplyTo: nullable(Type.String()),
      references: Type.Array(Type.String()),
      from: Mailbox.ref,
      to: Type.Array(Mailbox.ref),
      cc: Type.Optional(Type.Array(Mailbox.ref)),
      replyTo: Type.Optional(Mailbox.ref),
      subject: Type.String(),
      text: Type.String(),
      html: Type.Optional(Type.String({ description: 'Untrusted where the message is inbound.' })),
      extractedText: Type.Optional(
        Type.String({ description: 'Inbound: the new text without the quoted history.' }),
      ),
      metadata: MetadataShown,
      delivery: Delivery,
      createdAt: Time,
      updatedAt: Time,
      attachments: Type.Optional(Type.Array(Attachment.ref)),
      inboundSecurity: Type.Optional(InboundSecurity.ref),
      purpose: oneOf([...purposes], 'What kind of mail it is.'),
    },
    { description: 'A message, sent or received.', examples: [messageExample] },
  ),
)

export const MessageList = component(
  'MessageList',
  Type.Object(
    { messages: Type.Array(Message.ref), nextCursor: nullable(Type.String()) },
    { description: 'Messages, newest first.', examples: [{ messages: [messageExample], nextCursor: null }] },
  ),
)

export const messageComponents = [Attachment, InboundSecurity, Message, MessageList]
