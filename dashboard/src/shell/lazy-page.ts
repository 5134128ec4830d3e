// A page whose code is fetched when its address is opened.
import { lazyRouteComponent, type RouteComponent } from '@tanstack/react-router'

export type LoadPage<Name extends string> = () => Promise<Record<Name, () => unknown>>

/** Returns the component of this name from the module that `load` fetches. */
export function lazyPage<Name extends string>(name: Name, load: LoadPage<Name>): RouteComponent {
  return lazyRouteComponent(load as () => Promise<Record<Name, RouteComponent>>, name)
}
