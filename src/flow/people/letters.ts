// The letters that the service writes to people: short texts with one link each.

/** Each kind has its own share of the letters that the service may send. */
export type LetterKind = 'sign_up' | 'reset' | 'invitation' | 'notice' | 'request' | 'approval'

export interface Letter {
  kind: LetterKind
  subject: string
  text: string
}

const ignore = 'If it was not you, nothing needs to be done.'

/** After a sign-up. The link proves the address. The time distinguishes the reader's own sign-up from a stranger's. */
export function confirmationLetter(link: string, at: Date): Letter {
  return letter('sign_up', 'Confirm your address', [
    'Somebody, hopefully you, signed up to Posthorn with this address. This link confirms it, with the password that was given then, and signs you in:',
    link,
    `The sign-up was at ${timeOf(at)}. If it was not yours, do not open the link.`,
    `It works once, for 24 hours. ${ignore}`,
  ])
}

/** Answers a sign-up for an address that already has an account. Only the account's owner learns this. */
export function knownLetter(link: string): Letter {
  return letter('sign_up', 'You have an account already', [
    'Somebody, hopefully you, signed up to Posthorn with this address, which has an account already. Sign in here; if the password is lost, the page has a way to a new one:',
    link,
    ignore,
  ])
}

/** For any address: the same text with and without an account. */
export function resetLetter(link: string): Letter {
  return letter('reset', 'Choose a new password', [
    'Somebody, hopefully you, asked for a new password for this address at Posthorn. This link lets you choose one, and ends all your sessions:',
    link,
    'It works once, for one hour. If this address has no account here, the link says so; perhaps you have one under another address.',
    ignore,
  ])
}

/**
 * Security: a stranger chooses the names and the address. None of their words appear in the Subject or before our own text.
 * A name never becomes a link.
 */
export function invitationLetter(
  { organizationName, invitedBy, role }: { organizationName: string; invitedBy: string; role: string },
  link: string,
): Letter {
  return letter('invitation', 'You are invited to an organization', [
    `Somebody invites you to an organization at Posthorn, as ${role}. This link shows the invitation and accepts it:`,
    link,
    `They call the organization: ${withoutLinks(organizationName)}`,
    `Their address is: ${invitedBy}`,
    'The link works once, for 7 days. If you do not know them, nothing needs to be done.',
  ])
}

/**
 * For the operator, about an organization that waits for approval. Security: a stranger chooses the name, so it follows our
 * own words and makes no link.
 */
export function requestLetter(
  { id, name, owners }: { id: string; name: string; owners: readonly string[] },
  desk: string,
): Letter {
  return letter('request', 'An organization asks for access', [
    "Somebody asks for access to your Posthorn service for an organization. You can approve it in the operator's desk:",
    desk,
    'If the desk is closed, this command makes a link that opens it: posthorn operator link',
    `They call the organization: ${withoutLinks(name)}`,
    `Their address is: ${owners.join(', ')}`,
    `Its id is: ${id}`,
  ])
}

/** For an owner of an organization that the operator has approved. */
export function approvalLetter({ name }: { name: string }, pages: string): Letter {
  return letter('approval', 'Your organization is approved', [
    'The operator of this Posthorn service has approved your organization. Sign in and start here:',
    pages,
    `The organization is called: ${withoutLinks(name)}`,
  ])
}

/** The name without invisible characters and without anything that mail programs turn into a link. */
export function withoutLinks(name: string): string {
  return name
    .replace(/\p{Cf}/gu, '')
    .replace(/[.\u3002\uff0e\uff61](?=\S)/g, '[.]')
    .replace(/[:\uff1a](?=\S)/g, '[:]')
    .replaceAll('@', '[at]')
}

/** After a change to how a person signs in. `change` is one of our own sentences. */
export function changeLetter(
  change: string,
  { at, ip, link }: { at: Date; ip: string; link: string },
): Letter {
  return letter('notice', 'A change of how you sign in', [
    change,
    `This was at ${timeOf(at)}, from ${ip}. If it was you, nothing needs to be done.`,
    'If it was not you, choose a new password here. That ends all your sessions:',
    link,
  ])
}

/** For example 2026-11-25 10:43 UTC. */
function timeOf(at: Date): string {
  return `${at.toISOString().slice(0, 16).replace('T', ' ')} UTC`
}

function letter(kind: LetterKind, subject: string, paragraphs: string[]): Letter {
  return { kind, subject, text: `${paragraphs.join('\n\n')}\n` }
}
