// The audit log.
import { Page } from '../../parts/page.tsx'
import { shell } from '../../texts/shell.ts'

export function Audit() {
  return <Page title={shell.pages.audit}>{null}</Page>
}
