// An invitation.
import { Page } from '../../parts/page.tsx'

export function Invitation() {
  return <Page title={'Invitation'}>{null}</Page>
}
