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
        `this is development (POSTHORN_MAIL_HOST is unset) and HTTP listens on ${open[0]!.host}: the log shows a key that ` +
        'may do everything, and anyone who gets in reads all mail, reset links too',
      mend: 'set POSTHORN_MAIL_HOST for production, or let only this machine reach it: POSTHORN_HTTP=127.0.0.1:8025',
    })
  if (!isDevelopment && allowPrivateNetworks)
    exposures.push({
      detail:
        'POSTHORN_ALLOW_PRIVATE_NETWORKS is true: customers can have this machine call addresses of your own networks, by ' +
        'webhooks and by mail servers that they name',
      mend: 'unset POSTHORN_ALLOW_PRIVATE_NETWORKS, unless all customers may reach these networks',
    })
  return exposures
}
