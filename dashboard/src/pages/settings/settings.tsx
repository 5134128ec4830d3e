// The settings.
import { Page } from '../../parts/page.tsx'
import { shell } from '../../texts/shell.ts'

export function Settings() {
  return <Page title={shell.pages.settings}>{null}</Page>
}
