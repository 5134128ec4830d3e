// The validation page: one address with each check explained, or a list with progress and a result file.
import { Page } from '../../parts/page.tsx'
import { Tabs } from '../../parts/tabs.tsx'
import { useMay } from '../../shell/session.ts'
import { shell } from '../../texts/shell.ts'
import { validation } from '../../texts/validation.ts'
import { ManyAddresses } from './many-addresses.tsx'
import { OneAddress } from './one-address.tsx'

export function Validation() {
  if (!useMay('change'))
    return (
      <Page title={validation.title} lead={validation.lead}>
        <p className="text-muted">{shell.viewer}</p>
      </Page>
    )
  return (
    <Page title={validation.title} lead={validation.lead}>
      <Tabs
        label={validation.tabs}
        tabs={[
          { id: 'one', label: validation.one, content: <OneAddress /> },
          { id: 'many', label: validation.many, content: <ManyAddresses /> },
        ]}
      />
    </Page>
  )
}
