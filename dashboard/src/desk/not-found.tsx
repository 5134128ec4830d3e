// What is shown where there is no page, and where a page is broken.
import type { ErrorComponentProps } from '@tanstack/react-router'
import { Compass } from 'lucide-react'
import { Empty } from '../parts/empty.tsx'
import { ErrorNote } from '../parts/error-note.tsx'
import { ButtonLink } from '../parts/form/button.tsx'
import { Page } from '../parts/page.tsx'
import { desk } from '../texts/desk.ts'

export function NotFound() {
  return (
    <Page title={desk.notFound}>
      <Empty icon={Compass} title={desk.notFound} action={<ButtonLink to="/">{desk.toStart}</ButtonLink>}>
        {desk.notFoundWhat}
      </Empty>
    </Page>
  )
}

export function Broken({ error }: ErrorComponentProps) {
  return (
    <Page title={desk.broken} lead={desk.brokenWhat} width="text">
      <ErrorNote error={error} />
    </Page>
  )
}
