// Inboxes, threads and messages.
import { Page } from '../../parts/page.tsx'
import { shell } from '../../texts/shell.ts'

export function Mail() {
  return <Page title={shell.pages.mail}>{null}</Page>
}
