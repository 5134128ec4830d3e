// This program's metrics for Prometheus. Labels take few values, whatever comes from outside.
import { Counter, Gauge, Histogram, Registry } from 'prom-client'

export const registry = new Registry()
const registers = [registry]

const quickSeconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const longSeconds = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 21_600, 86_400, 259_200]

export const meters = {
  httpSeconds: new Histogram({
    name: 'posthorn_http_request_seconds',
    help: 'Duration of HTTP requests by operation and status class, without the time that they waited for mail.',
    labelNames: ['operation', 'status'] as const,
    buckets: quickSeconds,
    registers,
  }),
  waiting: new Gauge({
    name: 'posthorn_requests_waiting',
    help: 'Requests waiting for mail in an inbox, or for the scan of an attachment.',
    registers,
  }),
  querySeconds: new Histogram({
    name: 'posthorn_database_query_seconds',
    help: 'Duration of statements outside transactions, including the wait for a connection.',
    buckets: quickSeconds,
    registers,
  }),
  batchRows: new Histogram({
    name: 'posthorn_batch_rows',
    help: 'Rows committed together.',
    labelNames: ['batch'] as const,
    buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256],
    registers,
  }),
  batchSeconds: new Histogram({
    name: 'posthorn_batch_seconds',
    help: 'Time to commit a batch.',
    labelNames: ['batch'] as const,
    buckets: quickSeconds,
    registers,
  }),
  accepted: new Counter({
    name: 'posthorn_sends_accepted_total',
    help: 'Sends accepted, without replays.',
    registers,
  }),
  received: new Counter({
    name: 'posthorn_mails_received_total',
    help: 'Mails accepted with a 250 reply.',
    registers,
  }),
  verdicts: new Counter({
    name: 'posthorn_received_verdicts_total',
    help: 'SPF, DKIM and DMARC results of received mail.',
    labelNames: ['method', 'result'] as const,
    registers,
  }),
  peersRefused: new Counter({
    name: 'posthorn_peers_refused_total',
    help: 'SMTP peers refused, by reason.',
    labelNames: ['reason'] as const,
    registers,
  }),
  listLookups: new Counter({
    name: 'posthorn_blocklist_lookups_total',
    help: 'DNS block list queries by outcome.',
    labelNames: ['outcome'] as const,
    registers,
  }),
  rspamdChecks: new Counter({
    name: 'posthorn_rspamd_checks_total',
    help: 'Received mails by the action that Rspamd recommended, or the reason why it was not asked.',
    labelNames: ['outcome'] as const,
    registers,
  }),
  rspamdSeconds: new Histogram({
    name: 'posthorn_rspamd_check_seconds',
    help: 'Time spent waiting for Rspamd, by outcome.',
    labelNames: ['outcome'] as const,
    buckets: quickSeconds,
    registers,
  }),
  filed: new Counter({
    name: 'posthorn_messages_filed_total',
    help: 'Received mails that were filed as messages.',
    registers,
  }),
  attempts: new Counter({
    name: 'posthorn_attempts_total',
    help: 'Delivery attempts per recipient, by class of destination and outcome.',
    labelNames: ['class', 'outcome'] as const,
    registers,
  }),
  deliverySeconds: new Histogram({
    name: 'posthorn_delivery_seconds',
    help: 'Time from accepted to delivered, by class of destination.',
    labelNames: ['class'] as const,
    buckets: longSeconds,
    registers,
  }),
  tlsPolicies: new Counter({
    name: 'posthorn_tls_policies_total',
    help: 'Connections to mail servers of other domains, by the TLS policy that applied and whether the server met it.',
    labelNames: ['policy', 'outcome'] as const,
    registers,
  }),
  stsFetches: new Counter({
    name: 'posthorn_mta_sts_fetches_total',
    help: 'Fetches of MTA-STS policies of other domains, by outcome.',
    labelNames: ['outcome'] as const,
    registers,
  }),
  shapingRefusals: new Counter({
    name: 'posthorn_shaping_refusals_total',
    help: 'Replies by which destinations refused mail or connections for load, by group. Groups without a table are other.',
    labelNames: ['group'] as const,
    registers,
  }),
  shapingWaits: new Counter({
    name: 'posthorn_shaping_waits_total',
    help: 'Waits for a connection to a destination group, or for its next message, by group.',
    labelNames: ['group', 'for'] as const,
    registers,
  }),
  shapingPaused: new Gauge({
    name: 'posthorn_shaping_paused',
    help: 'Destination groups to which this process sends nothing now, because they refused mail for load.',
    labelNames: ['group'] as const,
    registers,
  }),
  shapingConnections: new Gauge({
    name: 'posthorn_shaping_connections',
    help: 'Connections that this process may have to a group with a table.',
    labelNames: ['group'] as const,
    registers,
  }),
  webhookSeconds: new Histogram({
    name: 'posthorn_webhook_call_seconds',
    help: 'Duration of webhook calls, by outcome.',
    labelNames: ['outcome'] as const,
    buckets: quickSeconds,
    registers,
  }),
  diskFree: new Gauge({
    name: 'posthorn_disk_free_bytes',
    help: 'Free space on the fullest disk that received mail needs.',
    registers,
  }),
  diskShort: new Gauge({
    name: 'posthorn_disk_short',
    help: '1 while no mail is received because disk space is low, else 0.',
    registers,
  }),
  blobFolderOk: new Gauge({
    name: 'posthorn_blob_folder_ok',
    help: '1 if the blob store answers and has the mark of the database. 0: large mail is refused.',
    registers,
  }),
  blobsLost: new Gauge({
    name: 'posthorn_blobs_lost',
    help: 'Large messages whose bytes were not in the blob store when the daily sweep last checked them.',
    registers,
  }),
  jobFailures: new Counter({
    name: 'posthorn_job_failures_total',
    help: 'Failed runs of a job, which are retried.',
    labelNames: ['name'] as const,
    registers,
  }),
}

/** Returns the class of a destination queue: `local`, `relay`, `capture`, or `domain` for a queue of one domain. */
export function classOf(route: string): string {
  return /@(.+)$/.exec(route)?.[1] ?? 'domain'
}
