// The charts.
import { Page } from '../../parts/page.tsx'
import { shell } from '../../texts/shell.ts'

export function Numbers() {
  return <Page title={shell.pages.numbers}>{null}</Page>
}
