// Meanings of remote servers' codes, with advice: RFC 3463 statuses, kinds of failure, and reasons why a send ended.

export interface Meaning {
  /** The event, in one sentence. */
  means: string
  /** The advice. */
  todo: string
}

const checkAddress =
  'Check the address with its owner. It is suppressed, so nothing more is sent there until you remove it.'
const byItself = 'Nothing: it is tried again by itself.'
const askThem =
  'The words of the server say what it objects to. Its postmaster can say more; give them the time and its reply.'

/** Returns the advice for deferred mail. */
export function triedAgain(todo: string): string {
  return todo.startsWith('Nothing') ? todo : `It is tried again by itself. ${todo}`
}

/** By the status without its first digit, which only separates permanent from temporary: `1.1` is 5.1.1 and 4.1.1. */
export const statuses: Record<string, Meaning> = {
  '1.0': { means: 'Something is wrong with the address.', todo: 'Check the address with its owner.' },
  '1.1': { means: 'There is no such mailbox.', todo: checkAddress },
  '1.2': {
    means: 'There is no such host behind the domain.',
    todo: 'Look for a typing mistake after the @.',
  },
  '1.3': { means: 'The server does not understand the address.', todo: 'Look for a typing mistake in it.' },
  '1.4': { means: 'The address stands for several mailboxes.', todo: 'Ask its owner for the exact one.' },
  '1.6': {
    means: 'The mailbox has moved and left no new address.',
    todo: 'Ask its owner for the new address.',
  },
  '1.7': {
    means: 'The server does not accept the form of your sender address.',
    todo: 'Send from an address of a verified domain.',
  },
  '1.8': {
    means: 'The server does not know the domain that you send from, or cannot reach it.',
    todo: 'Open Domains and verify the one you send from: its records must be found.',
  },
  '1.10': {
    means: 'The domain says that it takes no mail at all.',
    todo: 'Look for a typing mistake after the @, or use another address.',
  },
  '2.0': { means: 'Something is wrong with the mailbox.', todo: 'Ask its owner by another way.' },
  '2.1': {
    means: 'The mailbox exists and takes no mail at the moment.',
    todo: 'Its owner or their administrator has switched it off. Ask them by another way.',
  },
  '2.2': { means: 'The mailbox is full.', todo: 'Its owner has to make room. A later send may get through.' },
  '2.3': {
    means: 'The message is larger than this mailbox takes.',
    todo: 'Send a smaller one: a link in place of an attachment.',
  },
  '2.4': { means: 'The mailing list behind the address does not work.', todo: 'Tell whoever runs the list.' },
  '3.0': { means: 'The remote mail system has a problem.', todo: byItself },
  '3.1': { means: 'The remote mail system is out of space.', todo: byItself },
  '3.2': { means: 'The remote server takes no mail for now.', todo: byItself },
  '3.4': {
    means: 'The message is larger than the remote server takes.',
    todo: 'Send a smaller one: a link in place of an attachment.',
  },
  '4.0': { means: 'The way to the mailbox is broken behind the server.', todo: byItself },
  '4.1': { means: 'A host behind the server does not answer.', todo: byItself },
  '4.2': { means: 'The connection broke.', todo: byItself },
  '4.3': { means: 'The server could not look up where the mail belongs.', todo: byItself },
  '4.4': {
    means: 'The server does not know the way to the mailbox.',
    todo: 'The records of the recipient’s domain are wrong. Tell its owner.',
  },
  '4.5': { means: 'The remote mail system is overloaded.', todo: byItself },
  '4.6': {
    means: 'The message went round in circles behind the server.',
    todo: 'A forwarding of the recipient leads back to itself. Tell its owner.',
  },
  '4.7': {
    means: 'It could not be delivered in time.',
    todo: 'The remote server was out of reach for too long. Send again when it is back.',
  },
  '5.0': { means: 'The server did not take part in the protocol as it should.', todo: askThem },
  '5.3': { means: 'There are too many recipients for the server.', todo: 'Send to fewer at a time.' },
  '6.0': { means: 'The server could not make sense of the content.', todo: askThem },
  '6.3': { means: 'The content would have to be converted, which the server does not do.', todo: askThem },
  '7.0': { means: 'A rule of the receiving side forbids it.', todo: askThem },
  '7.1': {
    means: 'The receiving side does not permit mail from you to this address.',
    todo: askThem,
  },
  '7.8': { means: 'The relay did not accept the credentials.', todo: 'Tell whoever runs this service.' },
  '7.13': { means: 'The account behind the address is disabled.', todo: checkAddress },
  '7.20': {
    means: 'The server wants a DKIM signature that passes.',
    todo: 'Open Domains, and check the DKIM records of the one you send from.',
  },
  '7.23': {
    means: 'SPF did not pass: the domain does not list the server that sent.',
    todo: 'Open Domains, and check the SPF record of the one you send from.',
  },
  '7.25': {
    means: 'The sending server has no matching reverse DNS.',
    todo: 'Tell whoever runs this service: the address that it sends from needs a PTR record.',
  },
  '7.26': {
    means: 'The message failed several checks of who sent it.',
    todo: 'Open Domains, and check the DKIM and SPF records of the one you send from.',
  },
  '7.27': {
    means: 'The domain that you send from says that it takes no mail, so the server wants none of it.',
    todo: 'Publish an MX record for the domain that you send from.',
  },
  '7.28': {
    means: 'The server gets more mail from you than it wants in this time.',
    todo: 'It is tried again more slowly. Spread large sends over a longer time.',
  },
}

/** By the class of the subject, if the exact status is unknown. */
export const subjects: Record<string, Meaning> = {
  '1': { means: 'Something is wrong with the address.', todo: 'Check the address with its owner.' },
  '2': { means: 'Something is wrong with the mailbox.', todo: 'Ask its owner by another way.' },
  '3': { means: 'The remote mail system has a problem.', todo: byItself },
  '4': { means: 'The way to the mailbox is broken.', todo: byItself },
}

/** By the kind of failure, for replies with an unknown status. */
export const classifications: Record<string, Meaning> = {
  hard_bounce: { means: 'The server refused the address for good.', todo: checkAddress },
  mailbox_full: statuses['2.2']!,
  policy: { means: 'A rule of the receiving side forbids it.', todo: askThem },
  spam: {
    means: 'The receiving side takes the message, or the server that sent it, for spam.',
    todo: 'See that DKIM, SPF and DMARC are published, and that only people who asked get this mail. The reply often names the list to ask for removal.',
  },
  greylisted: {
    means: 'The server turns unknown senders away once, to see whether they come back.',
    todo: 'Nothing: the next try mostly gets through.',
  },
  rate_limited: statuses['7.28']!,
  network: {
    means: 'The server could not be reached, or the connection broke.',
    todo: 'Nothing yet: it is tried again by itself. If it stays so, the recipient’s mail server is down.',
  },
  dns: {
    means: 'Where mail for the domain goes could not be looked up.',
    todo: 'Look for a typing mistake after the @. Else it is a fault of the domain’s name servers, and may pass.',
  },
  tls: {
    means: 'An encrypted connection is needed and could not be made.',
    todo: 'The recipient’s server has to offer TLS with a good certificate. Tell its postmaster.',
  },
  protocol: { means: 'The server did not take part in the protocol as it should.', todo: askThem },
  expired: statuses['4.7']!,
  other: { means: 'The server gave no reason that is known.', todo: askThem },
}

/** Reasons why a recipient ended without a server's reply. */
export const failures: Record<string, Meaning> = {
  hard_bounce: classifications['hard_bounce']!,
  soft_bounce_expired: {
    means: 'The mailbox was full, or every attempt was deferred until the time was over.',
    todo: 'See the last reply for what stood in the way. Send again when that is gone.',
  },
  policy_rejected: classifications['policy']!,
  suppressed: {
    means: 'The address is on your suppression list, so nothing was sent.',
    todo: 'See Suppressions for why. Remove it there once you know that the address works and wants your mail.',
  },
  domain_not_found: {
    means: 'There is no such domain.',
    todo: 'Look for a typing mistake after the @.',
  },
  null_mx: statuses['1.10']!,
  tls_required: classifications['tls']!,
  inbox_deleted: {
    means: 'The inbox that it was sent from was deleted while it waited.',
    todo: 'Send it again from another inbox, if it is still wanted.',
  },
  cancelled: {
    means: 'It was cancelled before it went out.',
    todo: 'Send it again if it is wanted after all.',
  },
  internal_error: {
    means: 'This service could not write the message, by a fault of its own.',
    todo: 'Tell whoever runs this service, with the id of the submission.',
  },
}

/** The stage of the reply: what the server was asked when it answered. */
export const stages: Record<string, string> = {
  connect: 'answered to the greeting',
  mail: 'answered to the sender (MAIL FROM)',
  rcpt: 'answered to the recipient (RCPT TO)',
  data: 'answered to the beginning of the message (DATA)',
  message: 'answered to the whole message',
}
