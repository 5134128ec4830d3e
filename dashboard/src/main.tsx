// The entry of the dashboard.
import { QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { onSignedOut } from './api/client.ts'
import { passNonceOn } from './parts/nonce.ts'
import { listenForShortcuts } from './parts/shortcut.ts'
import { Toaster } from './parts/toaster.tsx'
import { queries } from './queries.ts'
import { router } from './router.tsx'
import { sessionQuery } from './shell/session.ts'
import './theme.css'

passNonceOn()
listenForShortcuts()
onSignedOut(() => {
  // Once for the many answers that say so together.
  if (queries.getQueryData(sessionQuery.queryKey) === null) return
  queries.clear()
  queries.setQueryData(sessionQuery.queryKey, null)
  void router.navigate({ to: '/sign-in', search: { to: router.state.location.href } })
})

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <RouterProvider router={router} />
      <Toaster />
    </QueryClientProvider>
  </StrictMode>,
)
