// The settings of a person and of their organization.
import { Page } from '../../parts/page.tsx'
import { useSession } from '../../shell/session.ts'
import { settings } from '../../texts/settings.ts'
import { Limits } from './limits.tsx'
import { OrganizationName } from './organization-name.tsx'
import { Passkeys } from './passkeys.tsx'
import { Password } from './password.tsx'
import { Profile } from './profile.tsx'
import { Sessions } from './sessions.tsx'
import { ThemeChoice } from './theme-choice.tsx'

export function Settings() {
  const { organization } = useSession()
  return (
    <Page title={settings.title} isText>
      <div className="grid gap-5">
        <Profile />
        <ThemeChoice />
        <Password />
        <Passkeys />
        <Sessions />
        {organization && <OrganizationName organization={organization} />}
        <Limits />
      </div>
    </Page>
  )
}
