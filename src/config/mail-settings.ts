// Settings of mail: our names, routes for outgoing mail, retries, and the treatment of received mail.
import { resolve } from 'node:path'
import type { DeliveryMode } from '../flow/route-policy.ts'
import { readRelay } from './linked-settings.ts'
import { type Reader, SettingError } from './setting-reader.ts'
import {
  boolean,
  cidrs,
  clamdAddress,
  duration,
  fileName,
  hostName,
  inboxAddress,
  integer,
  list,
  oneOf,
  outboundAddresses,
  resolver,
  rspamdUrl,
  wait,
} from './setting-values.ts'

const minute = 60_000
const hour = 60 * minute
const defaultRetryMs = [minute, 5 * minute, 15 * minute, 30 * minute, hour, 2 * hour, 4 * hour, 6 * hour]
const defaultWebhookRetryMs = [
  ...[5_000, 5 * minute, 30 * minute, 2 * hour, 5 * hour, 10 * hour, 14 * hour, 20 * hour, 24 * hour],
]

/** How ranges of addresses are written. */
export const ranges = '10.0.0.0/8,fd00::/8 (at most 1,000, never /0)'

/** Reads our names, and how mail leaves. */
export function readMail(reader: Reader, folder: string) {
  const mailHost = reader.read('POSTHORN_MAIL_HOST', null, hostName, 'a host name, such as mx.example.com')
  return {
    mailHost: mailHost ?? 'localhost',
    isDevelopment: mailHost === null,
    managedDomain: reader.read(
      'POSTHORN_MANAGED_DOMAIN',
      'inbox.localhost',
      hostName,
      'a domain, such as inbox.example.com',
    ),
    dnsServers: reader.read(
      'POSTHORN_DNS',
      [],
      list(resolver),
      '127.0.0.1:53, or several separated by commas',
    ),
    dnsTrusted: reader.read('POSTHORN_DNS_TRUSTED', [], cidrs, ranges),
    ...readDelivery(reader, mailHost ? 'direct' : 'capture', folder),
    ...readRetries(reader),
  }
}

function readDelivery(reader: Reader, usualMode: DeliveryMode, folder: string) {
  const modes = oneOf<DeliveryMode>('direct', 'relay', 'capture')
  const delivery = reader.read('POSTHORN_DELIVERY', usualMode, modes, 'direct, relay or capture')
  const relay = readRelay(reader)
  if (delivery === 'relay' && !relay) {
    throw new SettingError('POSTHORN_DELIVERY=relay needs POSTHORN_RELAY_URL: set it to smtp://host:port')
  }
  const deliveryFile = reader.read(
    'POSTHORN_DELIVERY_FILE',
    null,
    fileName,
    'the name of a file, such as delivery.toml',
  )
  return {
    delivery,
    relay,
    deliveryFile: deliveryFile && resolve(folder, deliveryFile),
    mxPort: reader.read('POSTHORN_MX_PORT', 25, integer(1, 65_535), 'a port, such as 25'),
    outbound: reader.read(
      'POSTHORN_OUTBOUND_IP',
      { ipv4: null, ipv6: null },
      outboundAddresses,
      'an address of this machine, such as 192.0.2.5, or one of each family: 192.0.2.5,2001:db8::5',
    ),
    allowPrivateNetworks: reader.read('POSTHORN_ALLOW_PRIVATE_NETWORKS', false, boolean, 'true or false'),
  }
}

function readRetries(reader: Reader) {
  return {
    retryScheduleMs: reader.read(
      'POSTHORN_RETRY_SCHEDULE',
      defaultRetryMs,
      list(wait),
      '1m,5m,15m,30m,1h, each up to 7d',
    ),
    retryLifetimeMs: reader.read(
      'POSTHORN_RETRY_LIFETIME',
      72 * hour,
      duration(1_000, 365),
      '72h, or up to 365d',
    ),
    webhookRetryScheduleMs: reader.read(
      'POSTHORN_WEBHOOK_RETRY_SCHEDULE',
      defaultWebhookRetryMs,
      list(wait),
      '5s,5m,30m,2h,5h,10h,14h,20h,24h, each up to 7d',
    ),
  }
}

/** Reads how received mail is judged and scanned, and how much of it may be downloaded. */
export function readReceiving(reader: Reader) {
  return {
    dmarc: reader.read('POSTHORN_DMARC', 'refuse', oneOf('refuse', 'report'), 'refuse or report'),
    arcTrusted: reader.read(
      'POSTHORN_ARC_TRUSTED',
      [],
      list(hostName),
      'a domain that seals, such as lists.example.org, or several separated by commas',
    ),
    rspamd: reader.read(
      'POSTHORN_RSPAMD',
      null,
      rspamdUrl,
      'http://127.0.0.1:11333, or http://:password@host:port with %2F for /, %3F for ?, %23 for # and %25 for %',
    ),
    dmarcReports: reader.read(
      'POSTHORN_DMARC_REPORTS',
      null,
      inboxAddress,
      'the address of an inbox, such as reports@inbox.example.com',
    ),
    tlsReports: reader.read(
      'POSTHORN_TLS_REPORTS',
      null,
      inboxAddress,
      'the address of an inbox, such as reports@inbox.example.com',
    ),
    clamd: reader.read(
      'POSTHORN_CLAMD',
      null,
      clamdAddress,
      '127.0.0.1:3310, or the path of its socket, /run/clamav/clamd.ctl',
    ),
    maxDownloadBytes: reader.read(
      'POSTHORN_MAX_DOWNLOAD_SIZE',
      26_214_400,
      integer(0, 1 << 30),
      'bytes, such as 26214400',
    ),
  }
}
