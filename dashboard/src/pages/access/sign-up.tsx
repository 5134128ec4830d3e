// The sign-up.
import { Page } from '../../parts/page.tsx'

export function SignUp() {
  return <Page title={'SignUp'}>{null}</Page>
}
