// The landing of a confirmation.
import { Page } from '../../parts/page.tsx'

export function Confirmation() {
  return <Page title={'Confirmation'}>{null}</Page>
}
