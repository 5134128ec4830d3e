// The entry of the dashboard.
import { RouterProvider } from '@tanstack/react-router'
import { onSignedOut, setChangeToken } from './api/client.ts'
import { queries } from './queries.ts'
import { router } from './router.tsx'
import { mount } from './shell/mount.tsx'
import { sessionQuery } from './shell/session.ts'

onSignedOut(async () => {
  // Clears the token first, so that other requests refused at the same time do not call this again.
  setChangeToken(null)
  await router.navigate({ to: '/sign-in', search: { to: router.state.location.href } })
  queries.clear()
  queries.setQueryData(sessionQuery.queryKey, null)
})

// The empty frame of index.html stays until the first page has its code and its session.
void router.load().finally(() => mount(<RouterProvider router={router} />))
