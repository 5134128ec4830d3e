// What there is before access is approved.
import { Page } from '../../parts/page.tsx'

export function Pending() {
  return <Page title={'Pending'}>{null}</Page>
}
