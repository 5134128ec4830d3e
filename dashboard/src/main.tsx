// The entry of the dashboard.
import { QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { onSignedOut, setChangeToken } from './api/client.ts'
import { passNonceOn } from './parts/nonce.ts'
import { listenForShortcuts } from './parts/shortcut.ts'
import { Toaster } from './parts/toaster.tsx'
import { queries } from './queries.ts'
import { router } from './router.tsx'
import { sessionQuery } from './shell/session.ts'
import './theme.css'

passNonceOn()
listenForShortcuts()
onSignedOut(async () => {
  // Once for the many answers that say so together: without a token nobody is signed out again.
  setChangeToken(null)
  await router.navigate({ to: '/sign-in', search: { to: router.state.location.href } })
  queries.clear()
  queries.setQueryData(sessionQuery.queryKey, null)
})

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <RouterProvider router={router} />
      <Toaster />
    </QueryClientProvider>
  </StrictMode>,
)
