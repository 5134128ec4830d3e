// Legal but dangerous settings: their risk and their remedy, as the start and the doctor report them.
import { isLoopback } from '../webhook/address-guard.ts'
import type { Settings } from './settings.ts'

interface Exposure {
  detail: string
  mend: string
}

type Exposing = Pick<Settings, 'isDevelopment' | 'http' | 'https' | 'allowPrivateNetworks'>

export function findExposures({ isDevelopment, http, https, allowPrivateNetworks }: Exposing): Exposure[] {
  const open = [http, https].filter((listener) => listener !== null && !isLoopback(listener.host))
  const exposures: Exposure[] = []
  if (isDevelopment && open.length > 0)
    exposures.push({
      detail:
        `development mode (POSTHORN_MAIL_HOST is unset) with HTTP on ${open[0]!.host}: the start prints a key that ` +
        'may do everything, and anyone who gets in reads all mail, including reset links',
      mend: 'set POSTHORN_MAIL_HOST for production, or listen only for this machine: POSTHORN_HTTP=127.0.0.1:8025',
    })
  if (!isDevelopment && allowPrivateNetworks)
    exposures.push({
      detail:
        'POSTHORN_ALLOW_PRIVATE_NETWORKS is true: customers can make this machine call addresses in your own networks, by ' +
        'webhooks and by the mail servers of their domains',
      mend: 'unset POSTHORN_ALLOW_PRIVATE_NETWORKS, unless all customers may reach these networks',
    })
  return exposures
}
