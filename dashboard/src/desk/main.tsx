// The entry of the operator's desk, which is served on the operator's listener.
import { RouterProvider } from '@tanstack/react-router'
import { ApiError } from '../api/client.ts'
import { ErrorNote } from '../parts/error-note.tsx'
import { mount } from '../shell/mount.tsx'
import { router } from './router.tsx'
import { useSession } from './session.ts'
import { SignIn } from './sign-in.tsx'

function Desk() {
  const { data: session, error, isPending, refetch } = useSession()
  if (isPending) return null
  if (session) return <RouterProvider router={router} />
  // A refused link would be refused again, so there is no retry.
  const retry = error instanceof ApiError ? {} : { onRetry: () => void refetch() }
  return <SignIn>{error && <ErrorNote error={error} {...retry} />}</SignIn>
}

mount(<Desk />)
