// The two reply buttons below the last message, and their keys.

import { Reply, ReplyAll } from 'lucide-react'
import { Button } from '../../parts/form/button.tsx'
import { useShortcut } from '../../parts/shortcut.ts'
import { useMay } from '../../shell/session.ts'
import { mail } from '../../texts/mail.ts'
import { writing } from '../../texts/writing.ts'
import type { Message } from './mail-queries.ts'
import { useGo, usePlace } from './place.ts'

/** Returns a function that opens a reply to the message. */
export function useReply({ id, threadId }: Message): (compose: 'reply' | 'all') => void {
  const go = useGo()
  const { inboxId, message } = usePlace()
  return (compose) => go({ inboxId, threadId, compose, to: id, message })
}

export function ReplyBar({ target }: { target: Message }) {
  const reply = useReply(target)
  const may = useMay('change')
  if (!may) return null
  return (
    <div className="flex gap-2">
      <Button icon={Reply} onClick={() => reply('reply')}>
        {writing.reply}
      </Button>
      <Button icon={ReplyAll} onClick={() => reply('all')}>
        {writing.replyAll}
      </Button>
    </div>
  )
}

export function ReplyKeys({ target }: { target: Message }) {
  const reply = useReply(target)
  const may = useMay('change')
  useShortcut({ keys: 'r', label: mail.keys.reply, group: mail.group }, () => may && reply('reply'))
  useShortcut({ keys: 'a', label: mail.keys.replyAll, group: mail.group }, () => may && reply('all'))
  return null
}
