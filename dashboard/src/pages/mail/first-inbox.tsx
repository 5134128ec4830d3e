// The mail page without an inbox: how to open the first one, here and by the API.
import { Inbox as InboxIcon, Plus } from 'lucide-react'
import { CodeBlock } from '../../parts/code-block.tsx'
import { Empty } from '../../parts/empty.tsx'
import { Button } from '../../parts/form/button.tsx'
import { mail } from '../../texts/mail.ts'

const firstCall = `curl -X POST ${location.origin}/v1/inboxes \\
  -H "x-api-key: $POSTHORN_KEY" \\
  -H 'content-type: application/json' \\
  -d '{"localPart":"hello"}'`

export function FirstInbox({ onOpen }: { onOpen: (() => void) | null }) {
  return (
    <div className="h-full overflow-y-auto">
      <Empty
        icon={InboxIcon}
        title={mail.firstInbox}
        action={
          onOpen && (
            <Button variant="primary" icon={Plus} onClick={onOpen}>
              {mail.newInbox}
            </Button>
          )
        }
        code={<CodeBlock label={mail.firstInboxCode} code={firstCall} />}
      >
        {mail.firstInboxWhat}
      </Empty>
    </div>
  )
}
