// Meanings of remote servers' codes, with advice: RFC 3463 statuses, kinds of failure, and reasons why a send ended.

export interface Meaning {
  /** The event, in one sentence. */
  means: string
  /** The advice. */
  todo: string
}

const checkAddress =
  'Check the address with its owner. It is suppressed: Posthorn sends nothing to it until you remove it.'
const byItself = 'No action needed. Posthorn tries again automatically.'
const askThem =
  'Read the server’s reply for its objection. For more, send its postmaster the time and the reply.'

/** Returns the advice for deferred mail. */
export function triedAgain(todo: string): string {
  return todo.startsWith('No action') ? todo : `Posthorn tries again automatically. ${todo}`
}

/** Returns the advice for mail that is not tried again. */
export function notTriedAgain(todo: string): string {
  return todo.startsWith('No action') ? askThem : todo
}

/** By the status without its first digit, which only separates permanent from temporary: `1.1` is 5.1.1 and 4.1.1. */
export const statuses: Record<string, Meaning> = {
  '1.0': { means: 'Something is wrong with the address.', todo: 'Check the address with its owner.' },
  '1.1': { means: 'The mailbox does not exist.', todo: checkAddress },
  '1.2': {
    means: 'The host of the domain does not exist.',
    todo: 'Check the domain after the @ for a typing mistake.',
  },
  '1.3': {
    means: 'The server does not understand the address.',
    todo: 'Check the address for a typing mistake.',
  },
  '1.4': { means: 'The address matches several mailboxes.', todo: 'Ask its owner for the exact address.' },
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
    todo: 'Open Domains and verify the domain you send from: all required records must be valid.',
  },
  '1.10': {
    means: 'The domain accepts no mail at all (null MX).',
    todo: 'Check the domain after the @ for a typing mistake, or use another address.',
  },
  '2.0': { means: 'Something is wrong with the mailbox.', todo: 'Contact its owner another way.' },
  '2.1': {
    means: 'The mailbox exists but accepts no mail at the moment.',
    todo: 'Its owner or their administrator has disabled it. Contact the owner another way.',
  },
  '2.2': { means: 'The mailbox is full.', todo: 'Its owner must free space. A later send may succeed.' },
  '2.3': {
    means: 'The message is larger than this mailbox accepts.',
    todo: 'Send a smaller message, such as a link instead of an attachment.',
  },
  '2.4': { means: 'The mailing list behind the address does not work.', todo: 'Tell the owner of the list.' },
  '3.0': { means: 'The remote mail system has a problem.', todo: byItself },
  '3.1': { means: 'The remote mail system is out of space.', todo: byItself },
  '3.2': { means: 'The remote server accepts no mail for now.', todo: byItself },
  '3.4': {
    means: 'The message is larger than the remote server accepts.',
    todo: 'Send a smaller message, such as a link instead of an attachment.',
  },
  '4.0': { means: 'The network behind the server has a problem.', todo: byItself },
  '4.1': { means: 'A host behind the server does not respond.', todo: byItself },
  '4.2': { means: 'The connection was lost.', todo: byItself },
  '4.3': { means: 'The server could not look up the route for the mail.', todo: byItself },
  '4.4': {
    means: 'The server has no route to the mailbox.',
    todo: 'The records of the recipient’s domain are wrong. Tell its owner.',
  },
  '4.5': { means: 'The remote mail system is overloaded.', todo: byItself },
  '4.6': {
    means: 'The message was caught in a mail loop.',
    todo: 'The recipient’s forwarding, or the MX record of the domain, leads back to the same server. Tell the recipient.',
  },
  '4.7': {
    means: 'The message could not be delivered in time.',
    todo: 'The remote server was unreachable for too long. Send again when it is back.',
  },
  '5.0': { means: 'The server did not follow the SMTP protocol.', todo: askThem },
  '5.3': { means: 'The server accepts fewer recipients per message.', todo: 'Send to fewer at a time.' },
  '6.0': { means: 'The server could not process the content.', todo: askThem },
  '6.3': { means: 'The server cannot convert the content, which it would need to do.', todo: askThem },
  '7.0': { means: 'A policy of the recipient’s server rejects the message.', todo: askThem },
  '7.1': {
    means: 'The recipient’s server does not allow mail from you to this address.',
    todo: askThem,
  },
  '7.8': { means: 'The relay rejected the credentials.', todo: 'Tell the operator of this service.' },
  '7.13': { means: 'The account behind the address is disabled.', todo: checkAddress },
  '7.20': {
    means: 'The server requires a valid DKIM signature.',
    todo: 'Open Domains, and check the DKIM records of the domain you send from.',
  },
  '7.23': {
    means: 'SPF failed: the domain does not list the sending server.',
    todo: 'Open Domains, and check the SPF record of the domain you send from.',
  },
  '7.25': {
    means: 'The sending server has no matching reverse DNS.',
    todo: 'Tell the operator of this service: its sending IP address needs a PTR record.',
  },
  '7.26': {
    means: 'The message failed several sender authentication checks.',
    todo: 'Open Domains, and check the DKIM and SPF records of the domain you send from.',
  },
  '7.27': {
    means: 'The server refuses mail from your domain because the domain accepts no mail itself (null MX).',
    todo: 'Publish an MX record for the domain that you send from.',
  },
  '7.28': {
    means: 'The server limits how much mail it accepts from you.',
    todo: 'Spread large sends over a longer time. Posthorn also sends more slowly.',
  },
}

/** By the class of the subject, if the exact status is unknown. */
export const subjects: Record<string, Meaning> = {
  '1': { means: 'Something is wrong with the address.', todo: 'Check the address with its owner.' },
  '2': { means: 'Something is wrong with the mailbox.', todo: 'Contact its owner another way.' },
  '3': { means: 'The remote mail system has a problem.', todo: byItself },
  '4': { means: 'The network to the mailbox has a problem.', todo: byItself },
}

/** By the kind of failure, for replies with an unknown status. */
export const classifications: Record<string, Meaning> = {
  hard_bounce: { means: 'The server refused the address permanently.', todo: checkAddress },
  mailbox_full: statuses['2.2']!,
  policy: { means: 'A policy of the recipient’s server rejects the message.', todo: askThem },
  spam: {
    means: 'The recipient’s server classified the message or the sending server as spam.',
    todo: 'Check that DKIM, SPF and DMARC are published, and send only to people who asked for this mail. The reply often names the block list to ask for removal.',
  },
  greylisted: {
    means: 'The server defers unknown senders once, to see whether they try again (greylisting).',
    todo: 'No action needed. The next attempt usually succeeds.',
  },
  rate_limited: statuses['7.28']!,
  network: {
    means: 'The server could not be reached, or the connection was lost.',
    todo: 'No action needed yet. Posthorn tries again automatically. If this persists, the recipient’s mail server is down.',
  },
  dns: {
    means: 'The mail servers of the domain could not be looked up in DNS.',
    todo: 'Check the domain after the @ for a typing mistake. Otherwise the domain’s name servers have a problem, often a temporary one.',
  },
  tls: {
    means: 'The required encrypted connection could not be made.',
    todo: 'The recipient’s server must offer TLS with a valid certificate. Tell its postmaster.',
  },
  protocol: { means: 'The server did not follow the SMTP protocol.', todo: askThem },
  expired: statuses['4.7']!,
  other: { means: 'The server gave no known reason.', todo: askThem },
}

/** Reasons why a recipient ended without a server's reply. */
export const failures: Record<string, Meaning> = {
  hard_bounce: classifications['hard_bounce']!,
  soft_bounce_expired: {
    means: 'The mailbox was full, or the server deferred every attempt until the retry time ended.',
    todo: 'Read the last reply for the reason. Send again once that is resolved.',
  },
  policy_rejected: classifications['policy']!,
  suppressed: {
    means: 'The address is on your suppression list, so Posthorn sent nothing.',
    todo: 'See the reason under Suppressions. Remove the address there once you know that it works and its owner wants your mail.',
  },
  domain_not_found: {
    means: 'The domain does not exist.',
    todo: 'Check the domain after the @ for a typing mistake.',
  },
  null_mx: statuses['1.10']!,
  tls_required: classifications['tls']!,
  inbox_deleted: {
    means: 'The sending inbox was deleted before delivery.',
    todo: 'To deliver the message, send it again from another inbox.',
  },
  cancelled: {
    means: 'The delivery was cancelled.',
    todo: 'To deliver the message, send it again.',
  },
  internal_error: {
    means: 'This service could not build the message because of an internal error.',
    todo: 'Send the submission ID to the operator of this service.',
  },
}

/** The SMTP step that the server accepted or rejected. */
export const stages: Record<string, string> = {
  connect: 'connection',
  mail: 'sender (MAIL FROM)',
  rcpt: 'recipient (RCPT TO)',
  data: 'start of the message (DATA)',
  message: 'message data',
}
