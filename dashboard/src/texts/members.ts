// The texts of the members page and the audit log.
export const members = {
  title: 'Members',
  lead: 'People with access to this organization.',
  invite: 'Invite',
  table: 'Members',
  invitations: 'Open invitations',
  invitationsLead: 'Each invitation is a link that works once, for seven days.',
  columns: { who: 'Person', role: 'Role', seen: 'Last seen', expires: 'Expires', actions: 'Actions' },
  you: 'you',
  notSeen: 'Never',
  roles: { owner: 'Owner', member: 'Member', viewer: 'Viewer' },
  roleWhat: {
    owner: 'Full access, including members and the organization’s name.',
    member: 'Reads and sends mail, and manages inboxes, domains, webhooks and keys. Cannot manage members.',
    viewer: 'Read-only access, without the audit log.',
  },
  alone: 'You are the only member',
  aloneWhat: 'Invite a colleague, so that somebody can help when you are away.',
  lastOwner:
    'You are the only owner, so you cannot leave or change your role. Make another member an owner first.',
  inviteTitle: 'Invite a member',
  inviteLead: 'Posthorn emails a link to this address. It replaces an earlier invitation.',
  email: 'Email address',
  emailMissing: 'Enter the email address of the person.',
  role: 'Role',
  inviteDeed: 'Send invitation',
  invited: (email: string) => `Invitation sent to ${email}.`,
  withdraw: 'Withdraw',
  withdrawTitle: 'Withdraw this invitation?',
  withdrawWhat: (email: string) =>
    `The link sent to ${email} stops working. You can invite the person again.`,
  withdrawDeed: 'Withdraw invitation',
  withdrawn: 'The invitation is withdrawn.',
  actionsOf: (name: string) => `Actions for ${name}`,
  changeRole: 'Change role',
  changeTitle: (name: string) => `Role of ${name}`,
  changeDeed: 'Change role',
  changed: 'The role is changed. It applies at once.',
  remove: 'Remove',
  leave: 'Leave',
  removeTitle: (name: string) => `Remove ${name}?`,
  removeWhat: 'They lose access to this organization at once.',
  removeDeed: 'Remove member',
  removed: 'The member is removed.',
  leaveTitle: 'Leave this organization?',
  leaveWhat: 'You lose access to this organization until an owner invites you again.',
  leaveDeed: 'Leave organization',
}

/** Returns `1 key` or `2 keys`, and an empty list for 0. */
const counted = (count: number, one: string): string[] =>
  count === 0 ? [] : [count === 1 ? `1 ${one}` : `${count} ${one}s`]
const listed = new Intl.ListFormat('en', { type: 'conjunction' })

/** The texts about objects that a member created, and that a change of role may end. */
export const made = {
  theirs: 'that they created',
  yours: 'that you created',
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
  endHint: 'These stop working at once.',
  keepHint: 'These keep working. You can end them later under Keys, Webhooks and Members.',
}

export const audit = {
  title: 'Audit log',
  lead: 'Changes in this organization, with actor, time and IP address.',
  viewer: 'Viewers cannot see the audit log',
  viewerWhat: 'It contains names and IP addresses. An owner can make you a member.',
  export: 'Export CSV',
  list: 'Audit entries',
  filter: 'Show only',
  filterWho: 'Filter entries',
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
  empty: 'No entries yet',
  emptyWhat: 'Changes by members appear here. Create a key to see the first entry.',
  none: 'No matching entries',
  noneWhat: 'None of the loaded entries matches. Change the filter, or load more.',
  searched: (count: number) => (count === 1 ? '1 entry' : `${count} entries`),
  from: (ip: string) => `from ${ip}`,
  here: 'on the server',
}

/** Actions in words, placed between the actor and the subject. */
export const deeds: Record<string, string> = {
  'access.asked': 'requested access for',
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
  'domain.one_click_changed': 'changed the one-click link of',
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
  'suppression.removed': 'removed from the suppression list',
}

/** Actions whose subject is omitted if it is the actor. */
export const ownDeeds: Record<string, string> = {
  'member.joined': 'joined',
  'member.removed': 'left',
  'member.role_changed': 'changed their own role',
  'person.renamed': 'changed their name',
  'session.opened': 'signed in',
  'session.ended': 'ended one of their sessions',
  'sessions.ended': 'ended all their other sessions',
  'password.changed': 'changed their password',
  'identity.linked': 'linked an identity provider',
}
