// Rows as the API shows them, field by field.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AttachmentEntry, MessageRow } from '../store/mailbox/messages.ts'
import type { SubmissionRow } from '../store/sending/submissions.ts'
import { presentMessage, presentSubmission } from './present.ts'

const at = new Date('2026-11-21T09:00:00.000Z')
const sent = {
  id: 'msg_0199a1b23c4d5e6f708192a3',
  organizationId: 'o',
  inboxId: 'inb_0199a1b23c4d5e6f708192a3',
  threadId: 'thr_0199a1b23c4d5e6f708192a3',
  seq: 1,
  direction: 'outbound',
  internetMessageId: '<a@b>',
  inReplyTo: null,
  referenceIds: [],
  sender: { email: 'a@b.test', name: '' },
  recipients: { to: [{ email: 'c@d.test', name: 'C' }], bcc: [{ email: 'hidden@d.test' }] },
  subject: 'S',
  text: 'T',
  html: null,
  extractedText: null,
  isCut: false,
  metadata: { n: 1 },
  purpose: 'unclassified',
  attachments: [],
  security: null,
  submissionId: '0199a1b2-5e6f-7081-92a3-3e4f5a6b7c8d',
  submissionStatus: 'pending',
  failureCode: null,
  rawId: null,
  createdAt: at,
  updatedAt: at,
} as unknown as MessageRow

test('check 13: a sent message shows its fields, and its hidden recipients to the sender alone', () => {
  assert.deepEqual(presentMessage(sent), {
    id: sent.id,
    inboxId: sent.inboxId,
    threadId: sent.threadId,
    direction: 'outbound',
    internetMessageId: '<a@b>',
    inReplyTo: null,
    references: [],
    from: { email: 'a@b.test' },
    to: [{ email: 'c@d.test', name: 'C' }],
    bcc: [{ email: 'hidden@d.test' }],
    subject: 'S',
    text: 'T',
    metadata: { n: 1 },
    delivery: { submissionId: sent.submissionId, status: 'submitted', failureCode: null },
    createdAt: '2026-11-21T09:00:00.000Z',
    updatedAt: '2026-11-21T09:00:00.000Z',
    purpose: 'unclassified',
  })
})

const statuses = [
  ['pending', 'submitted'],
  ['delivered', 'delivered'],
  ['partially_delivered', 'partially_delivered'],
  ['failed', 'failed'],
] as const

for (const [submissionStatus, status] of statuses)
  test(`a message of a ${submissionStatus} submission is ${status}`, () => {
    assert.equal(presentMessage({ ...sent, submissionStatus }).delivery.status, status)
  })

const entry = (scanState: AttachmentEntry['scanState']): AttachmentEntry => ({
  filename: 'f',
  contentType: 'text/plain',
  size: 1,
  disposition: 'attachment',
  contentId: null,
  sha256: '0',
  scanState,
})
const security = {
  envelope: { from: 'a@b.test', recipients: ['c@d.test'], receivedBy: 'mx', protocol: 'ESMTP' as const },
  smtp: { remoteIp: '192.0.2.1', helo: 'h', tls: { encrypted: false, protocol: 'none', cipher: 'none' } },
  authentication: { spf: 'not_evaluated', dkim: 'not_evaluated', dmarc: 'not_evaluated' },
}
const received: MessageRow = {
  ...sent,
  direction: 'inbound',
  security,
  submissionId: null,
  submissionStatus: null,
  extractedText: 'E',
}

const summaries: [states: AttachmentEntry['scanState'][], summary: string][] = [
  [[], 'none'],
  [['clean', 'clean'], 'clean'],
  [['clean', 'unscanned'], 'unscanned'],
  [['unscanned', 'failed'], 'failed'],
  [['failed', 'infected', 'clean'], 'infected'],
]

for (const [states, summary] of summaries)
  test(`attachments (${states.join(', ') || 'none'}) are ${summary} together`, () => {
    const shown = presentMessage({ ...received, attachments: states.map(entry) })
    assert.deepEqual(shown.inboundSecurity, {
      trust: 'untrusted',
      smtp: security.smtp,
      authentication: security.authentication,
      attachments: summary,
    })
    assert.deepEqual(
      shown.attachments?.map(({ id }) => id),
      states.map((_, index) => `att_0199a1b23c4d5e6f708192a3_${index + 1}`),
    )
    assert.deepEqual(shown.delivery, { submissionId: null, status: 'received', failureCode: null })
    assert.equal(shown.extractedText, 'E')
  })

test('a message shows the block lists that named its client', () => {
  const listedBy = ['list.example.net']
  assert.deepEqual(
    presentMessage({ ...received, security: { ...security, listedBy } }).inboundSecurity?.listedBy,
    listedBy,
  )
  assert.ok(!('listedBy' in presentMessage(received).inboundSecurity!))
})

test('a message shows Rspamd’s findings if Rspamd was asked', () => {
  const spam = { score: 6.5, action: 'add header', symbols: ['OFFER'] }
  assert.deepEqual(
    presentMessage({ ...received, security: { ...security, spam } }).inboundSecurity?.spam,
    spam,
  )
  assert.ok(!('spam' in presentMessage(received).inboundSecurity!))
})

test('a submission has a queue id once a recipient was tried, and times in milliseconds', () => {
  const recipient = {
    email: 'c@d.test',
    status: 'pending',
    response: null,
    failureCode: null,
    updatedAt: '2026-11-21T09:00:00.123456+00:00',
    attempts: 0,
  }
  const row = {
    ...sent,
    id: sent.submissionId,
    status: 'pending',
    response: null,
    recipients: [recipient],
  } as unknown as SubmissionRow
  assert.equal(presentSubmission(row).queueId, null)
  assert.deepEqual(presentSubmission(row).recipients, [
    {
      email: 'c@d.test',
      status: 'pending',
      response: null,
      failureCode: null,
      updatedAt: '2026-11-21T09:00:00.123Z',
    },
  ])
  const tried = { ...row, recipients: [{ ...recipient, attempts: 1 }] } as SubmissionRow
  assert.match(presentSubmission(tried).queueId ?? '', /^[A-Z2-7]{12}$/)
})
