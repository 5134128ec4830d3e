// One domain.
import { Page } from '../../parts/page.tsx'
import { shell } from '../../texts/shell.ts'

export function DomainPage() {
  return <Page title={shell.pages.domains}>{null}</Page>
}
