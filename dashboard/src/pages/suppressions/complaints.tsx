// The complaints.
import { Page } from '../../parts/page.tsx'
import { shell } from '../../texts/shell.ts'

export function Complaints() {
  return <Page title={shell.pages.suppressions}>{null}</Page>
}
