// Local parts that name a role and not a person, written without dots, hyphens and underscores.

// RFC 2142 3: business; 4: operations; 5: protocols; 6: lists.
const rfc2142 = [
  ...['info', 'marketing', 'sales', 'support'],
  ...['abuse', 'noc', 'security'],
  ...['postmaster', 'hostmaster', 'usenet', 'news', 'webmaster', 'www', 'uucp', 'ftp'],
  ...['listrequest', 'listserv', 'majordomo'],
]

const machines = [
  ...['noreply', 'donotreply', 'bounce', 'bounces', 'mailerdaemon', 'daemon', 'nobody', 'autoreply', 'robot'],
  ...['root', 'admin', 'administrator', 'sysadmin', 'mailadmin', 'devnull', 'null', 'postfix', 'ssladmin'],
  ...['dmarc', 'dmarcreports', 'tlsreports', 'tlsrpt', 'fbl', 'dns', 'hostadmin', 'server', 'system'],
  ...['alert', 'alerts', 'monitoring', 'notification', 'notifications', 'notify', 'unsubscribe', 'subscribe'],
  ...['newsletter', 'newsletters', 'list', 'lists', 'mail', 'email', 'test', 'testing', 'spam'],
]

const offices = [
  ...[
    'accounting',
    'accounts',
    'billing',
    'finance',
    'invoice',
    'invoices',
    'invoicing',
    'payments',
    'payroll',
  ],
  ...['purchasing', 'procurement', 'orders', 'order', 'shop', 'store', 'booking', 'bookings', 'reservations'],
  ...['contact', 'contactus', 'hello', 'enquiries', 'enquiry', 'inquiries', 'inquiry', 'office', 'reception'],
  ...['help', 'helpdesk', 'customercare', 'customerservice', 'customersupport', 'techsupport', 'feedback'],
  ...['service', 'services', 'team', 'staff', 'everyone', 'all', 'board', 'management', 'secretary'],
  ...[
    'hr',
    'humanresources',
    'jobs',
    'careers',
    'career',
    'recruiting',
    'recruitment',
    'legal',
    'compliance',
  ],
  ...['privacy', 'dpo', 'gdpr', 'copyright', 'dmca', 'press', 'media', 'pr', 'publicrelations', 'partners'],
  ...['it', 'itsupport', 'dev', 'developer', 'developers', 'devops', 'engineering', 'ops', 'operations'],
  ...['registrar', 'admissions', 'editor', 'advertising', 'ads', 'events', 'webadmin', 'domains', 'hosting'],
]

/** The local parts that mean a role on every domain. */
export const roleNames: ReadonlySet<string> = new Set([...rfc2142, ...machines, ...offices])

/** The form for comparison: lower case, without a tag and without dots, hyphens and underscores. */
export function foldRole(localPart: string): string {
  return localPart.toLowerCase().replace(/\+.*$/s, '').replace(/[._-]/g, '')
}
