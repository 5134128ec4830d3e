// One captured mail.
import { Page } from '../../parts/page.tsx'
import { shell } from '../../texts/shell.ts'

export function CapturedMail() {
  return <Page title={shell.pages.captured}>{null}</Page>
}
