// From the id of a message to its thread.
import { Page } from '../../parts/page.tsx'
import { shell } from '../../texts/shell.ts'

export function OpenMessage() {
  return <Page title={shell.pages.mail}>{null}</Page>
}
