// The domains.
import { Page } from '../../parts/page.tsx'
import { shell } from '../../texts/shell.ts'

export function Domains() {
  return <Page title={shell.pages.domains}>{null}</Page>
}
