// How a node finds the next hop of mail: shared by deliveries and by traces of them.
import { HopFinder } from '../dns/mx.ts'
import { OwnHost } from '../dns/own-host.ts'
import type { NextHopDeps } from '../flow/delivering/next-hop.ts'
import { ownNameOf } from '../flow/receiving/own-name.ts'
import type { Foundation } from '../foundation.ts'
import { listNodeAddresses } from '../store/nodes.ts'
import { allowsMailTo } from './part.ts'

/** `nodeId`: the node whose own listener is tried first. */
export function createNextHop(foundation: Foundation, nodeId: number | null): NextHopDeps {
  const { settings, db, clock, secretBox, deliveryRules } = foundation
  return {
    hopFinder: createHopFinder(foundation),
    resolver: foundation.resolver.for('delivery'),
    mode: settings.delivery,
    relay: settings.relay,
    mxPort: settings.mxPort,
    outbound: settings.outbound,
    pools: deliveryRules().pools,
    ehloName: settings.mailHost,
    ownEhloName: () => ownNameOf(secretBox, settings.mailHost, clock.now()),
    // This node's own listener needs no other node, and hangs only if this node hangs.
    listAddresses: (kind) => listNodeAddresses(db, kind, nodeId),
  }
}

function createHopFinder({ settings, db, clock, resolver }: Foundation): HopFinder {
  const ownHost = new OwnHost({
    resolver,
    mailHost: settings.isDevelopment ? null : settings.mailHost,
    listListening: () => listNodeAddresses(db, 'smtp', null),
    port: settings.mxPort,
  })
  const isOwn = (name: string, addresses: readonly string[]) => ownHost.is(name, addresses)
  return new HopFinder({
    resolver: resolver.for('delivery'),
    isAllowed: allowsMailTo(settings),
    isOwn,
    clock,
  })
}
