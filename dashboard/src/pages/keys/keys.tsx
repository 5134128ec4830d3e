// The keys.
import { Page } from '../../parts/page.tsx'
import { shell } from '../../texts/shell.ts'

export function Keys() {
  return <Page title={shell.pages.keys}>{null}</Page>
}
