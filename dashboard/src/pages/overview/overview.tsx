// The overview.
import { Page } from '../../parts/page.tsx'
import { shell } from '../../texts/shell.ts'

export function Overview() {
  return <Page title={shell.pages.overview}>{null}</Page>
}
