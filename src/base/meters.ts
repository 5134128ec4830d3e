// This program's metrics for Prometheus. Labels take few values, whatever comes from outside.
import { Counter, Gauge, Histogram, Registry } from 'prom-client'

export const registry = new Registry()
const registers = [registry]

const quickSeconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const longSeconds = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 21_600, 86_400, 259_200]

export const meters = {
  httpSeconds: new Histogram({
    name: 'posthorn_http_request_seconds',
    help: 'HTTP requests by operation and class of status, without what they waited for mail.',
    labelNames: ['operation', 'status'] as const,
    buckets: quickSeconds,
    registers,
  }),
  waiting: new Gauge({
    name: 'posthorn_requests_waiting',
    help: 'Requests that wait for mail in their inbox, or for a verdict on an attachment.',
    registers,
  }),
  querySeconds: new Histogram({
    name: 'posthorn_database_query_seconds',
    help: 'Statements outside transactions, waiting for a connection included.',
    buckets: quickSeconds,
    registers,
  }),
  batchRows: new Histogram({
    name: 'posthorn_batch_rows',
    help: 'Rows that were committed together.',
    labelNames: ['batch'] as const,
    buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256],
    registers,
  }),
  batchSeconds: new Histogram({
    name: 'posthorn_batch_seconds',
    help: 'How long a batch took to be committed.',
    labelNames: ['batch'] as const,
    buckets: quickSeconds,
    registers,
  }),
  accepted: new Counter({
    name: 'posthorn_sends_accepted_total',
    help: 'Sends accepted, replays not among them.',
    registers,
  }),
  received: new Counter({
    name: 'posthorn_mails_received_total',
    help: 'Mails that were answered with 250.',
    registers,
  }),
  verdicts: new Counter({
    name: 'posthorn_received_verdicts_total',
    help: 'What SPF, DKIM and DMARC said of received mail.',
    labelNames: ['method', 'result'] as const,
    registers,
  }),
  peersRefused: new Counter({
    name: 'posthorn_peers_refused_total',
    help: 'Times that a peer was turned away by SMTP, by reason.',
    labelNames: ['reason'] as const,
    registers,
  }),
  listLookups: new Counter({
    name: 'posthorn_blocklist_lookups_total',
    help: 'Questions to DNS block lists by outcome.',
    labelNames: ['outcome'] as const,
    registers,
  }),
  rspamdChecks: new Counter({
    name: 'posthorn_rspamd_checks_total',
    help: 'Received mails by what Rspamd wants done with them, or why it was not asked.',
    labelNames: ['outcome'] as const,
    registers,
  }),
  rspamdSeconds: new Histogram({
    name: 'posthorn_rspamd_check_seconds',
    help: 'How long Rspamd was waited for, by outcome.',
    labelNames: ['outcome'] as const,
    buckets: quickSeconds,
    registers,
  }),
  filed: new Counter({
    name: 'posthorn_messages_filed_total',
    help: 'Received mails that became messages.',
    registers,
  }),
  attempts: new Counter({
    name: 'posthorn_attempts_total',
    help: 'Attempts at recipients by class of destination and outcome.',
    labelNames: ['class', 'outcome'] as const,
    registers,
  }),
  deliverySeconds: new Histogram({
    name: 'posthorn_delivery_seconds',
    help: 'From accepted to delivered, by class of destination.',
    labelNames: ['class'] as const,
    buckets: longSeconds,
    registers,
  }),
  webhookSeconds: new Histogram({
    name: 'posthorn_webhook_call_seconds',
    help: 'Webhook calls by outcome.',
    labelNames: ['outcome'] as const,
    buckets: quickSeconds,
    registers,
  }),
  diskFree: new Gauge({
    name: 'posthorn_disk_free_bytes',
    help: 'Free room of the fullest disk that received mail needs.',
    registers,
  }),
  diskShort: new Gauge({
    name: 'posthorn_disk_short',
    help: 'Whether no mail is received for want of room on disk.',
    registers,
  }),
  blobFolderOk: new Gauge({
    name: 'posthorn_blob_folder_ok',
    help: 'Whether the blob folder is there and bears the mark of the database; 0: large mail is refused.',
    registers,
  }),
  jobFailures: new Counter({
    name: 'posthorn_job_failures_total',
    help: 'Runs of a job that failed and were tried again.',
    labelNames: ['name'] as const,
    registers,
  }),
}

/** Returns the class of a destination queue: `local`, `relay`, `capture`, or `domain` for a queue of one domain. */
export function classOf(route: string): string {
  return route.startsWith('@') ? route.slice(1) : 'domain'
}
