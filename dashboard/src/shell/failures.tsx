// The pages for an unknown address and for a page that failed.
import type { ErrorComponentProps } from '@tanstack/react-router'
import { Compass, RefreshCw, TriangleAlert } from 'lucide-react'
import { ApiError } from '../api/client.ts'
import { Empty } from '../parts/empty.tsx'
import { wordsOf } from '../parts/error-note.tsx'
import { Button, ButtonLink } from '../parts/form/button.tsx'
import { useTitle } from '../parts/use-title.ts'
import { shell } from '../texts/shell.ts'

export function NotFound() {
  useTitle(shell.notFound)
  return (
    <Empty
      icon={Compass}
      heading="h1"
      title={shell.notFound}
      action={<ButtonLink to="/">{shell.toStart}</ButtonLink>}
    >
      {shell.notFoundWhat}
    </Empty>
  )
}

export function Broken({ error, reset }: ErrorComponentProps) {
  const isOutdated = /dynamically imported module|module script failed/i.test(String(error))
  const title = isOutdated ? shell.outdated : error instanceof ApiError ? wordsOf(error).title : shell.broken
  useTitle(title)
  const again = isOutdated ? () => location.reload() : reset
  return (
    <div role="alert">
      <Empty
        icon={isOutdated ? RefreshCw : TriangleAlert}
        title={title}
        heading="h1"
        action={
          <Button variant="primary" onClick={again}>
            {shell.reload}
          </Button>
        }
      >
        {isOutdated ? shell.outdatedWhat : shell.brokenWhat}
        {!isOutdated && <code className="mt-3 block text-sm break-words">{String(error)}</code>}
      </Empty>
    </div>
  )
}

/** The page of a failure without the frame, for when the service does not answer at all. */
export function BrokenAlone(props: ErrorComponentProps) {
  return (
    <main>
      <Broken {...props} />
    </main>
  )
}
