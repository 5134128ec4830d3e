// A new password.
import { Page } from '../../parts/page.tsx'

export function Reset() {
  return <Page title={'Reset'}>{null}</Page>
}
