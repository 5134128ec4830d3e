// Classifies a peer's SMTP reply: temporary or permanent, its kind, and whether the recipient's address is dead.

/** The stage of the conversation at which the reply came. `connect` is everything before the first MAIL. */
export type ReplyStage = 'connect' | 'mail' | 'rcpt' | 'data' | 'message'

export type Classification =
  | 'hard_bounce'
  | 'mailbox_full'
  | 'policy'
  | 'spam'
  | 'greylisted'
  | 'rate_limited'
  | 'network'
  | 'dns'
  | 'tls'
  | 'protocol'
  | 'expired'
  | 'other'

export interface ReplyMeaning {
  /** A 5xx reply: a retry would not help. */
  isPermanent: boolean
  classification: Classification
  /** The code of a recipient that ends with this reply: at once if it is permanent, at expiry if not. */
  failureCode: 'hard_bounce' | 'policy_rejected' | 'soft_bounce_expired'
  /** The address takes no mail and must not be tried again. */
  suppresses: boolean
}

interface ReplyWords {
  code: number
  enhanced: string | null
  text: string
}

// RFC 3463 3.2: bad mailbox, bad system, bad syntax, moved without forwarding; and 5.1.10, null MX.
const deadAddress = /^5\.1\.(?:1|2|3|6|10)$/
const neverDead = /^5\.[247]\./

const patterns: readonly [Classification, RegExp][] = [
  ['expired', /message expired|delivery time expired|retry timeout exceeded/i],
  ['greylisted', /gr[ae]y-?\s?list|\bpostgrey\b|deferred for greylisting/i],
  [
    'rate_limited',
    /rate[- ]?limit|throttl|too many (?:messages|connections|mails|recipients|concurrent|sessions)|receiving mail (?:at a rate|too quickly)|receivingrate|sending (?:rate|limit)|\brate\b.{0,40}\bexceed|exceed.{0,40}\brate\b|too (?:fast|frequent|much mail)|unusual rate/i,
  ],
  [
    'tls',
    /\bstarttls\b|\btls\b.{0,30}\b(?:required|mandatory|needed)|(?:require|use).{0,20}\btls\b|encryption (?:is )?(?:required|needed)/i,
  ],
  [
    'mailbox_full',
    /over ?quota|quota (?:exceeded|violation|limit)|(?:exceed|over).{0,30}\b(?:quota|storage)|mailbox (?:is )?full|mailbox limit exee?ceded|full mailbox|out of storage|mailbox size limit|insufficient disk|disk (?:quota|full)|not enough (?:storage )?space/i,
  ],
  [
    'spam',
    /\bspam|\bjunk ?mail|\bdnsbl|\brbl\b|\b(?:black|block|deny) ?list|(?<!\bnot )listed (?:on|in|by|at)|spamhaus|spamcop|abuseat|ivmsip|barracuda|senderscore|proofpoint|cloudmark|\bbanned\b|poor reputation|low reputation|\breputation\b|\b(?:ip|host|domain|address|client|server).{0,30}\bblocked|\bblocked (?:by|using|due|for|-)(?!.{0,40}\bpolic(?:y|ies)\b)|unsolicited|virus|malware|\b\(BL\)/i,
  ],
]
const policyWords =
  /\bpolicy\b|\bpolicies\b|\bdmarc|\bspf\b|\bdkim\b|authenticat|not authoriz|unauthoriz|access (?:is )?denied|relay|\bptr\b|reverse dns|name lookup failed|client host rejected|sender.{0,40}(?:reject|denied|invalid|does not exist|must exist|unknown|verif|resolve fail|has no a\b)|not verified|content.{0,20}(?:reject|denied)|(?:message|mail) (?:content )?(?:denied|rejected|refused|too (?:big|large))|size (?:limit|exceeds)|\bsecurity (?:polic|reason|rule|violation|restriction|check|risk|setting|issue|threat)|\baup\b|\bnot permitted\b/i
const mailbox = '(?:user|recipient|mailbox|account|address|mail-?box|local part|subscriber|alias|id)'
const missing =
  "(?:unknown|unrecognized|not recognized|not found|not known|does(?: not|n't) exist|not exist|non-?existent|no longer (?:valid|exists?|available|on (?:this )?server)|not (?:a )?valid|invalid|not listed|not available|undeliverable)"
const userUnknown = new RegExp(
  [
    `\\b${mailbox}\\b.{0,80}\\b${missing}`,
    `\\b(?:unknown|invalid|no such|non-?existent|undeliverable|bad destination|no) (?:${mailbox}|person|customer)\\b`,
    `\\bno (?:such |valid )?(?:${mailbox})\\b.{0,20}\\bhere\\b|\\bno mail-?box here\\b|sorry, no mailbox`,
    "\\b(?:user|recipient|account|mailbox)\\b.{0,40}\\bdoes(?: not|n't) have an?\\b.{0,80}\\baccount\\b",
    "\\bdoes(?: not|n't) have an? .{1,80} account\\b|not (?:a valid|our) (?:user|customer|recipient|mailbox)|not a known user",
    'utilisateur inconnu|destinataire inconnu|adresse.{0,40}invalide|usuario desconocido|unbekannter empf|recipnotfound',
    // Japanese: not found, does not exist.
    '(?:ユーザ|宛先|アドレス).{0,80}(?:見つかりません|存在しません)',
  ].join('|'),
  'i',
)
// The unknown party may be the sender, its address or its host. Then the recipient is not dead.
const aboutTheSender =
  /\b(?:sender|mail from|from (?:address|domain|header|field)|envelope|helo|ehlo|client|sending|return[- ]path|ip(?:v[46])? address|ptr|reverse)\b|\bfrom:? ?</i
const closedAccount =
  /(?:account|mailbox|user|recipient).{0,60}\b(?:disabled|inactive|closed|suspended|deactivated|discontinued|blocked|bloqu|not active|not activated)\b|disableduser|overquotaperm/i

/** Classifies a reply of 400 or more. Pure. Linear in the text, which its reader bounds. */
export function classify(reply: ReplyWords, stage: ReplyStage): ReplyMeaning {
  const isPermanent = reply.code >= 500
  const kind = kindOf(reply, stage)
  // A recipient refused temporarily is not known to be dead.
  const classification = kind === 'hard_bounce' && !isPermanent ? 'other' : kind
  return {
    isPermanent,
    classification,
    failureCode: isPermanent ? failureOf(classification) : 'soft_bounce_expired',
    suppresses: isPermanent && isDead(reply, stage),
  }
}

/** A full mailbox is a soft bounce even if the server refuses it permanently: the address exists. */
function failureOf(classification: Classification): ReplyMeaning['failureCode'] {
  if (classification === 'mailbox_full') return 'soft_bounce_expired'
  const aboutTheAddress: Classification[] = ['hard_bounce', 'network', 'dns', 'expired', 'other']
  return aboutTheAddress.includes(classification) ? 'hard_bounce' : 'policy_rejected'
}

function isDead({ enhanced, text }: ReplyWords, stage: ReplyStage): boolean {
  if (stage === 'connect' || stage === 'mail') return false
  if (enhanced !== null && deadAddress.test(enhanced)) return true
  if (enhanced !== null && neverDead.test(enhanced)) return false
  return stage === 'rcpt' && saysUnknown(text) && wordsOf(text) === null
}

function saysUnknown(text: string): boolean {
  return userUnknown.test(text) && !aboutTheSender.test(text)
}

/** Whether words alone, without any code, state why a mail was refused. */
export function saysWhy(text: string): boolean {
  return classify({ code: 550, enhanced: null, text }, 'message').classification !== 'other'
}

/** The kind by the words alone, whatever the codes say. Null if the words say nothing certain. */
function wordsOf(text: string): Classification | null {
  return patterns.find(([, pattern]) => pattern.test(text))?.[0] ?? null
}

function kindOf(reply: ReplyWords, stage: ReplyStage): Classification {
  const { enhanced, text } = reply
  const status = enhanced?.slice(2) ?? ''
  const subject = status.split('.')[0]
  return (
    statusKinds.get(status) ??
    // RFC 3463 3.2: the addressing statuses are certain. For the others the words say more than the number.
    (subject === '1' ? 'hard_bounce' : null) ??
    wordsOf(text) ??
    (saysUnknown(text) || closedAccount.test(text) ? 'hard_bounce' : null) ??
    (policyWords.test(text) ? 'policy' : null) ??
    subjectKinds.get(subject ?? '') ??
    codeKind(reply, stage)
  )
}

// RFC 3463 3: statuses whose detail is certain enough to come before the words of the reply.
const statusKinds = new Map<string, Classification>([
  ['1.7', 'policy'],
  ['1.8', 'policy'],
  ['1.9', 'protocol'],
  ['2.2', 'mailbox_full'],
  ['2.3', 'policy'],
  ['3.4', 'policy'],
  ['4.3', 'dns'],
  ['4.4', 'dns'],
  ['4.7', 'expired'],
  // RFC 7505 4.2: the sender's domain has a null MX.
  ['7.27', 'policy'],
  ['7.28', 'rate_limited'],
  // From the IANA registry: the user account is disabled.
  ['7.13', 'hard_bounce'],
])

const subjectKinds = new Map<string, Classification>([
  ['2', 'hard_bounce'],
  ['4', 'network'],
  ['5', 'protocol'],
  ['6', 'protocol'],
  ['7', 'policy'],
])

/** The kind by code and stage, if neither status nor words decide. */
function codeKind({ code }: ReplyWords, stage: ReplyStage): Classification {
  // RFC 5321 4.2.2: syntax and sequence.
  if (code >= 500 && code <= 504) return 'protocol'
  // RFC 4954 6: authentication required or failed.
  if (code === 530 || code === 535) return 'policy'
  // RFC 5321 4.2.2: storage of the mailbox at RCPT, size of the message after it.
  if (code === 552) return stage === 'rcpt' ? 'mailbox_full' : 'policy'
  if (stage === 'connect') return code >= 500 ? 'policy' : 'network'
  if (code === 421) return 'network'
  // RFC 5321 4.2.2: mailbox unavailable, not local, name not allowed; RFC 7504 4: 556, domain takes no mail.
  return stage === 'rcpt' && [550, 551, 553, 556].includes(code) ? 'hard_bounce' : 'other'
}
