// The first page of the desk: the approvals if any wait, otherwise the organizations.
import { Navigate } from '@tanstack/react-router'
import { Loaded } from '../parts/loaded.tsx'
import { useCounts } from './queries.ts'

export function Home() {
  const query = useCounts()
  return (
    <Loaded query={query} waiting={null}>
      {({ pending }) => <Navigate to={pending > 0 ? '/approvals' : '/organizations'} replace />}
    </Loaded>
  )
}
