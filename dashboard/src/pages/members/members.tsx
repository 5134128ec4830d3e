// The members.
import { Page } from '../../parts/page.tsx'
import { shell } from '../../texts/shell.ts'

export function Members() {
  return <Page title={shell.pages.members}>{null}</Page>
}
