// The sign-in.
import { Page } from '../../parts/page.tsx'

export function SignIn() {
  return <Page title={'SignIn'}>{null}</Page>
}
