// The overview: the first steps if the organization has sent nothing yet, otherwise its day.
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { api, read } from '../../api/client.ts'
import { SkeletonRows } from '../../parts/list/skeleton.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { useMay } from '../../shell/session.ts'
import { Day } from './day.tsx'
import { FirstSteps } from './first-steps.tsx'

const latestCount = 6

export function Overview() {
  const latest = useQuery({
    queryKey: ['submissions', 'latest'],
    queryFn: () => read(api.GET('/v1/submissions', { params: { query: { limit: latestCount } } })),
    refetchOnMount: 'always',
  })
  // The cached answer of an earlier visit may be older than the first mail.
  if (latest.data?.submissions.length === 0 && !latest.isFetchedAfterMount) return <SkeletonRows />
  return <Loaded query={latest}>{({ submissions }) => <Content submissions={submissions} />}</Loaded>
}

/** People at the first steps stay there until they leave the page. */
function Content({ submissions }: Parameters<typeof Day>[0]) {
  const [isNew] = useState(submissions.length === 0)
  const mayChange = useMay('change')
  return isNew && mayChange ? <FirstSteps /> : <Day submissions={submissions} />
}
