// The endpoints.
import { Page } from '../../parts/page.tsx'
import { shell } from '../../texts/shell.ts'

export function Webhooks() {
  return <Page title={shell.pages.webhooks}>{null}</Page>
}
