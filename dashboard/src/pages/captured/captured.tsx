// Captured mail.
import { Page } from '../../parts/page.tsx'
import { shell } from '../../texts/shell.ts'

export function Captured() {
  return <Page title={shell.pages.captured}>{null}</Page>
}
