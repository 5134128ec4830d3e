// The overview: the first steps of an organization that has sent nothing yet, and the day of one that has.
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
  // An earlier visit may have been before the first mail.
  if (latest.data?.submissions.length === 0 && !latest.isFetchedAfterMount) return <SkeletonRows />
  return <Loaded query={latest}>{({ submissions }) => <Content submissions={submissions} />}</Loaded>
}

/** Who is at the first steps stays there until they leave the page. */
function Content({ submissions }: Parameters<typeof Day>[0]) {
  const [isNew] = useState(submissions.length === 0)
  const mayChange = useMay('change')
  return isNew && mayChange ? <FirstSteps /> : <Day submissions={submissions} />
}
