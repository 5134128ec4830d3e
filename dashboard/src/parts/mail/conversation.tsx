// The SMTP dialogue of an attempt, folded: each command, its reply, and its time.
import { conversation as words } from '../../texts/conversation.ts'

interface ConversationProps {
  conversation: {
    isReused: boolean
    steps: { command: string; atMs: number; code: number; enhancedStatus: string | null; text: string }[]
  }
}

export function Conversation({ conversation: { isReused, steps } }: ConversationProps) {
  return (
    <details className="text-sm">
      <summary className="w-fit rounded-sm text-faint">{words.title}</summary>
      {isReused && <p className="mt-1 text-faint">{words.reused}</p>}
      <table aria-label={words.title} className="mt-1 w-full border-collapse text-left align-top">
        <thead className="sr-only">
          <tr>
            <th>{words.when}</th>
            <th>{words.said}</th>
            <th>{words.answered}</th>
          </tr>
        </thead>
        <tbody>
          {steps.map(({ command, atMs, code, enhancedStatus, text }, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a command may come twice, and the order is fixed
            <tr key={index} className="align-baseline">
              <td className="numbers pr-3 text-right whitespace-nowrap text-faint">{words.atMs(atMs)}</td>
              <td className="pr-3">
                <code>{command}</code>
              </td>
              <td className="w-full">
                <code className="wrap-anywhere">
                  {[code, enhancedStatus, text].filter(Boolean).join(' ')}
                </code>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  )
}
