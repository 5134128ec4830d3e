// One endpoint.
import { Page } from '../../parts/page.tsx'
import { shell } from '../../texts/shell.ts'

export function WebhookPage() {
  return <Page title={shell.pages.webhooks}>{null}</Page>
}
