// Local parts that no inbox gets: those the service needs, and those that RFC 2142 reserves on a shared domain.

/** Local parts that the service needs on every domain that it receives for. */
const needed = ['postmaster', 'abuse', 'mailer-daemon', 'bounce', 'bounces', 'fbl']

// RFC 2142 3: business; 4: operations; 5: protocols.
const rfc2142 = [
  ...['info', 'marketing', 'sales', 'support'],
  ...['abuse', 'noc', 'security'],
  ...['postmaster', 'hostmaster', 'usenet', 'news', 'webmaster', 'www', 'uucp', 'ftp'],
]

const tlsReports = ['tls-reports', 'tlsrpt']

const operational = [
  ...['noreply', 'no-reply', 'dmarc', 'dmarc-reports', ...tlsReports, 'root', 'admin', 'administrator'],
  ...['postfix', 'daemon', 'unsubscribe'],
  // Senders of the service's own mail to people.
  ...['accounts', 'posthorn-accounts'],
]

const onCustomerDomains = new Set(needed.map(fold))
const onManagedDomains = new Set([...needed, ...rfc2142, ...operational].map(fold))

/** Whether the local part is reserved, compared after case folding, with dots and tags removed. */
export function isReserved(localPart: string, domainKind: 'managed' | 'customer'): boolean {
  const folded = fold(localPart)
  if (folded.startsWith('bounce-') || folded.startsWith('bounces-')) return true
  return (domainKind === 'managed' ? onManagedDomains : onCustomerDomains).has(folded)
}

/** Whether the mail host receives reports about TLS (RFC 8460) at this local part. */
export function isTlsReports(localPart: string): boolean {
  return tlsReports.includes(localPart)
}

function fold(localPart: string): string {
  return localPart.toLowerCase().replace(/\+.*$/s, '').replaceAll('.', '')
}
