// The suppressed addresses.
import { Page } from '../../parts/page.tsx'
import { shell } from '../../texts/shell.ts'

export function Suppressions() {
  return <Page title={shell.pages.suppressions}>{null}</Page>
}
