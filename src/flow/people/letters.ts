// What the service writes to people: short texts with one link each.

export interface Letter {
  subject: string
  text: string
}

const ignore = 'If it was not you, nothing needs to be done.'

/** To who has signed up: the link proves the address. */
export function confirmationLetter(link: string): Letter {
  return letter('Confirm your address', [
    'Somebody, hopefully you, signed up to Posthorn with this address. This link confirms it and signs you in:',
    link,
    `It works once, for 24 hours. ${ignore}`,
  ])
}

/** To who has an account already: an answer to a sign-up that shows nothing to anybody else. */
export function knownLetter(link: string): Letter {
  return letter('You have an account already', [
    'Somebody, hopefully you, signed up to Posthorn with this address, which has an account already. Sign in here; if the password is lost, the page has a way to a new one:',
    link,
    ignore,
  ])
}

/** To any address: the same with an account and without. */
export function resetLetter(link: string): Letter {
  return letter('Choose a new password', [
    'Somebody, hopefully you, asked for a new password for this address at Posthorn. This link lets you choose one, and ends all your sessions:',
    link,
    'It works once, for one hour. If this address has no account here, the link says so; perhaps you have one under another address.',
    ignore,
  ])
}

export function invitationLetter(
  { organizationName, invitedBy, role }: { organizationName: string; invitedBy: string; role: string },
  link: string,
): Letter {
  return letter(`Invitation to ${organizationName}`, [
    `${invitedBy} invites you to ${organizationName} at Posthorn, as ${role}. This link accepts the invitation:`,
    link,
    'It works once, for 7 days. If you do not know them, nothing needs to be done.',
  ])
}

function letter(subject: string, paragraphs: string[]): Letter {
  return { subject, text: `${paragraphs.join('\n\n')}\n` }
}
