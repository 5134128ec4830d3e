// The settings that all nodes of a deployment must share. Each node publishes its values to the others.
import { defaultLimits } from '../flow/accounts/organization.ts'
import type { Limits } from '../store/accounts/organizations.ts'
import type { AgreedSettings, Disagreement } from '../store/nodes.ts'
import type { Settings } from './settings.ts'

/** Returns values by the names of their settings. None has a secret: operators see them in the log and in the doctor. */
export function agreedSettings(settings: Settings): AgreedSettings {
  const { relay, retention, retryScheduleMs, retryLifetimeMs, webhookRetryScheduleMs } = settings
  return {
    POSTHORN_MANAGED_DOMAIN: settings.managedDomain,
    POSTHORN_MAIL_HOST: settings.mailHost,
    POSTHORN_PUBLIC_URL: settings.publicUrl ?? unset,
    POSTHORN_DELIVERY: settings.delivery,
    POSTHORN_RELAY_URL: relay ? `${relay.host}:${relay.port}` : unset,
    POSTHORN_RELAY_TLS: relay ? (relay.tlsVerify === 'host' ? 'verified' : 'unverified') : unset,
    POSTHORN_ALLOW_PRIVATE_NETWORKS: String(settings.allowPrivateNetworks),
    POSTHORN_DMARC: settings.dmarc,
    POSTHORN_DMARC_REPORTS: settings.dmarcReports ?? unset,
    POSTHORN_TLS_REPORTS: settings.tlsReports ?? unset,
    POSTHORN_OPERATOR_MAIL: settings.operatorMail ?? unset,
    // If only one of two releases knows a period, it is no difference while it is unset.
    POSTHORN_RETENTION: JSON.stringify(retention, (_, value) => value ?? undefined),
    POSTHORN_RETRY_SCHEDULE: seconds(...retryScheduleMs),
    POSTHORN_RETRY_LIFETIME: seconds(retryLifetimeMs),
    POSTHORN_WEBHOOK_RETRY_SCHEDULE: seconds(...webhookRetryScheduleMs),
    POSTHORN_DEFAULT_LIMITS: JSON.stringify(changedLimits(settings.defaultLimits)),
    POSTHORN_SIGN_UP: settings.isSignUpOpen ? 'open' : 'invited',
    POSTHORN_OIDC_ISSUER: settings.oidc?.issuer ?? unset,
  }
}

const unset = '(not set)'

/** Returns the limits that differ from the defaults, as the setting has them. */
function changedLimits(limits: Limits): Partial<Limits> {
  const changed = Object.entries(limits).filter(
    ([name, value]) => value !== defaultLimits[name as keyof Limits],
  )
  return Object.fromEntries(changed)
}

function seconds(...durationsMs: number[]): string {
  return durationsMs.map((ms) => `${ms / 1_000}s`).join(',')
}

/** Returns one line with the node, the setting and both values. */
export function describeDisagreement(
  own: AgreedSettings,
  { node, operator, setting, value }: Disagreement,
): string {
  const at = operator ? ` at ${operator}` : ''
  return `node ${node}${at} has ${setting}=${value}, this node ${own[setting]}`
}

/**
 * With two managed domains each node refuses mail for the other's inboxes. With two delivery modes half of the mail is
 * never sent.
 */
export const agreementMend = 'set it to the same value on all nodes'
