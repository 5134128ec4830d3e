// A page that is fetched when its address is opened.
import { lazyRouteComponent, type RouteComponent } from '@tanstack/react-router'

export type LoadPage<Name extends string> = () => Promise<Record<Name, () => unknown>>

/** The component of this name in the module that `load` fetches. */
export function lazyPage<Name extends string>(name: Name, load: LoadPage<Name>): RouteComponent {
  return lazyRouteComponent(load as () => Promise<Record<Name, RouteComponent>>, name)
}
