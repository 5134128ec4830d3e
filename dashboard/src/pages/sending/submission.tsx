// The life of one send.
import { Page } from '../../parts/page.tsx'
import { shell } from '../../texts/shell.ts'

export function SubmissionLife() {
  return <Page title={shell.pages.sending}>{null}</Page>
}
