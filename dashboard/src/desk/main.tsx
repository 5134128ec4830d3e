// The operator's desk: the entry of what is served on the operator's listener.
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { ApiError } from '../api/client.ts'
import { ErrorNote } from '../parts/error-note.tsx'
import { passNonceOn } from '../parts/nonce.ts'
import { listenForShortcuts } from '../parts/shortcut.ts'
import { Toaster } from '../parts/toaster.tsx'
import '../theme.css'
import { router } from './router.tsx'
import { useSession } from './session.ts'
import { SignIn } from './sign-in.tsx'

const staleMs = 5_000
const queries = new QueryClient({ defaultOptions: { queries: { staleTime: staleMs, retry: mayRetry } } })

/** Once, where it was no answer of the service. */
function mayRetry(failures: number, error: Error): boolean {
  return failures === 0 && !(error instanceof ApiError)
}

function Desk() {
  const { data: session, error, isPending, refetch } = useSession()
  if (isPending) return null
  if (session) return <RouterProvider router={router} />
  // A link that opens nothing opens nothing the next time either.
  const retry = error instanceof ApiError ? {} : { onRetry: () => void refetch() }
  return <SignIn>{error && <ErrorNote error={error} {...retry} />}</SignIn>
}

passNonceOn()
listenForShortcuts()
createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <Desk />
      <Toaster />
    </QueryClientProvider>
  </StrictMode>,
)
