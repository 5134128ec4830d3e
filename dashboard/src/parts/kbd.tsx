// Keys to press, drawn as on a keyboard: `g m`, `Mod k`.
const isMac = /Mac|iPhone|iPad/.test(navigator.userAgent)
const signs: Record<string, string> = { Mod: isMac ? '⌘' : 'Ctrl', Enter: '↵', Escape: 'Esc' }

export function Kbd({ keys }: { keys: string }) {
  return (
    <span className="inline-flex gap-1">
      {keys.split(' ').map((key) => (
        <kbd
          key={key}
          className="grid h-5 min-w-5 place-items-center rounded-sm border border-line-strong bg-page px-1 text-xs text-muted"
        >
          {signs[key] ?? key}
        </kbd>
      ))}
    </span>
  )
}
