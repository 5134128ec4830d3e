// The sends.
import { Page } from '../../parts/page.tsx'
import { shell } from '../../texts/shell.ts'

export function Submissions() {
  return <Page title={shell.pages.sending}>{null}</Page>
}
