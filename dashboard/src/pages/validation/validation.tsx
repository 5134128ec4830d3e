// Validation of addresses.
import { Page } from '../../parts/page.tsx'
import { shell } from '../../texts/shell.ts'

export function Validation() {
  return <Page title={shell.pages.validation}>{null}</Page>
}
