// The Feedback-ID field, by which a receiver counts complaints for each sender and campaign.
import { sha256 } from '../../base/digest.ts'

interface Counted {
  /** The domain that signs. */
  domain: string
  /** The id of the organization that sends. */
  organizationId: string
  /** The customer's name of the campaign. Null if it has none. */
  campaign: string | null
}

/**
 * `campaign:organization:send:sender`. The parts are digests, equal in all mail of one campaign, organization or domain, so
 * they identify no tenant to others, and no campaign of another tenant.
 *
 * QUIRK: no RFC describes it. Gmail wants up to three identifiers and a sender of 5 to 15 characters
 * (https://support.google.com/a/answer/6254652).
 */
export function feedbackIdOf({ domain, organizationId, campaign }: Counted): string {
  const ofCampaign = campaign === null ? 'none' : digest('campaign', organizationId, campaign)
  return [ofCampaign, digest('organization', organizationId), 'send', digest('sender', domain)].join(':')
}

function digest(...words: string[]): string {
  return sha256(['feedback-id', ...words].join('\n'))
    .toString('hex')
    .slice(0, 12)
}
