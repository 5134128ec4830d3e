// The texts of the members page and the audit log.
export const members = {
  title: 'Members',
  lead: 'Who sees and steers the mail of your organization.',
  invite: 'Invite',
  table: 'Members',
  invitations: 'Open invitations',
  invitationsLead: 'Each was mailed as a link that is good for seven days, once.',
  columns: { who: 'Who', role: 'Role', seen: 'Last seen', expires: 'Ends', actions: 'Actions' },
  you: 'you',
  notSeen: 'Not yet',
  roles: { owner: 'Owner', member: 'Member', viewer: 'Viewer' },
  roleWhat: {
    owner: 'May do everything, invite and remove members too.',
    member: 'Sends, reads and sets up everything, makes keys; cannot change who is a member.',
    viewer: 'Looks at everything and changes nothing, makes no key, does not see the audit log.',
  },
  alone: 'You are the only one here',
  aloneWhat: 'Invite a colleague: somebody else should be able to help when you are away.',
  lastOwner:
    'You are the only owner, so you cannot leave or become less: somebody must be able to let others in. Make another member an owner first.',
  inviteTitle: 'Invite somebody',
  inviteLead: 'A mail with a link goes to them at once. An earlier invitation of the address ends.',
  email: 'E-mail address',
  emailMissing: 'Give the address of the one you invite.',
  role: 'They will be',
  inviteDeed: 'Send the invitation',
  invited: (email: string) => `The invitation is on its way to ${email}.`,
  withdraw: 'Withdraw',
  withdrawTitle: 'Withdraw this invitation?',
  withdrawWhat: (email: string) =>
    `The link that ${email} got does not work any more. You can invite them again.`,
  withdrawDeed: 'Withdraw the invitation',
  withdrawn: 'The invitation is withdrawn.',
  actionsOf: (name: string) => `Actions for ${name}`,
  changeRole: 'Change the role',
  changeTitle: (name: string) => `The role of ${name}`,
  changeDeed: 'Change the role',
  changed: 'The role is changed. It counts from their next step.',
  remove: 'Remove',
  leave: 'Leave',
  removeTitle: (name: string) => `Remove ${name}?`,
  removeWhat: 'They lose access to this organization at once.',
  removeDeed: 'Remove them',
  removed: 'They are no member any more.',
  leaveTitle: 'Leave this organization?',
  leaveWhat: 'You see nothing of it any more, until an owner invites you again.',
  leaveDeed: 'Leave',
}

/** Returns `1 key` or `2 keys`, and an empty list for 0. */
const counted = (count: number, one: string): string[] =>
  count === 0 ? [] : [count === 1 ? `1 ${one}` : `${count} ${one}s`]
const listed = new Intl.ListFormat('en', { type: 'conjunction' })

/** The texts about a member's creations that end with a change of role. */
export const made = {
  theirs: 'that they made',
  yours: 'that you made',
  keys: 'Keys',
  webhooks: 'Webhooks',
  invitations: 'Open invitations',
  others: (count: number) => `and ${count} more`,
  end: (made: Record<'keys' | 'webhooks' | 'invitations', readonly object[]>, by: string) => {
    const deeds = [
      ...counted(made.keys.length, 'key').map((text) => `revoke ${text}`),
      ...counted(made.webhooks.length, 'webhook').map((text) => `disable ${text}`),
      ...counted(made.invitations.length, 'invitation').map((text) => `withdraw ${text}`),
    ]
    return `Also ${listed.format(deeds)} ${by}`
  },
  endHint: 'All of this stops working at once.',
  keepHint: 'All of this goes on working. You can end it later under Keys, Webhooks and Members.',
}

export const audit = {
  title: 'Audit',
  lead: 'Who did what, when, and from where: keys, members, domains, deletions, approvals.',
  viewer: 'Viewers do not see the audit log',
  viewerWhat: 'It names people and where they were. An owner can make you a member.',
  export: 'Export CSV',
  list: 'What was done',
  filter: 'Show only',
  filterWho: 'Who or what',
  filterHint: 'A name, an address, a domain…',
  kinds: {
    all: 'Everything',
    key: 'Keys',
    member: 'Members',
    domain: 'Domains',
    webhook: 'Webhooks',
    mail: 'Deleted mail',
    account: 'Accounts',
    organization: 'Organization',
  },
  empty: 'Nothing was done yet',
  emptyWhat: 'What members change stands here from the first key on.',
  none: 'Nothing fits',
  noneWhat: 'Nothing of what is loaded fits the filter.',
  searched: (count: number) => `${count} entries looked at`,
  from: (ip: string) => `from ${ip}`,
  here: 'on the service’s machine',
}

/** Actions in words, placed between the actor and the subject. */
export const deeds: Record<string, string> = {
  'access.asked': 'asked for access for',
  'organization.created': 'created the organization',
  'organization.renamed': 'renamed the organization to',
  'organization.approved': 'approved the organization',
  'organization.suspended': 'suspended the organization',
  'organization.limits_changed': 'changed the limits of',
  'organization.deleted': 'deleted the organization',
  'member.invited': 'invited',
  'member.invitation_withdrawn': 'withdrew the invitation of',
  'member.role_changed': 'changed the role of',
  'member.removed': 'removed',
  'key.created': 'created the key',
  'key.rotated': 'rotated a key; the new one is',
  'key.revoked': 'revoked the key',
  'passkey.added': 'added the passkey',
  'passkey.removed': 'removed the passkey',
  'domain.registered': 'registered the domain',
  'domain.deleted': 'deleted the domain',
  'domain.keys_rotated': 'rotated the DKIM keys of',
  'inbox.created': 'created the inbox',
  'inbox.renamed': 'renamed the inbox',
  'inbox.deleted': 'deleted the inbox',
  'message.deleted': 'deleted the message',
  'submission.cancelled': 'cancelled the submission',
  'webhook.created': 'created the webhook endpoint',
  'webhook.changed': 'changed the webhook endpoint',
  'webhook.deleted': 'deleted the webhook endpoint',
  'webhook.secret_rotated': 'rotated the secret of the webhook endpoint',
  'webhook.call_replayed': 'replayed a call of the webhook endpoint',
  'suppression.added': 'suppressed',
  'suppression.removed': 'took off the suppression list',
}

/** Actions whose subject is omitted if it is the actor. */
export const ownDeeds: Record<string, string> = {
  'member.joined': 'joined',
  'member.removed': 'left',
  'member.role_changed': 'changed their own role',
  'person.renamed': 'changed their name',
  'session.opened': 'signed in',
  'session.ended': 'ended a session of theirs',
  'sessions.ended': 'ended all their other sessions',
  'password.changed': 'changed their password',
  'identity.linked': 'linked an identity provider',
}
