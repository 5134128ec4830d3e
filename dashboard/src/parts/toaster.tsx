// Shows and announces the short messages.
import { X } from 'lucide-react'
import { useEffect, useState } from 'react'
import { parts } from '../texts/parts.ts'
import { classes } from './classes.ts'
import { IconButton } from './form/button.tsx'
import { Kbd } from './kbd.tsx'
import { useShortcut } from './shortcut.ts'
import { dismiss, type Toast, undo, undoMs, useToasts } from './toasts.ts'

export function Toaster() {
  const toasts = useToasts()
  return (
    <div
      role="status"
      aria-live="polite"
      className="pointer-events-none fixed inset-x-4 bottom-18 z-60 flex flex-col items-center gap-2 sm:bottom-6"
    >
      {toasts.map((toast) => (
        <ToastNote key={toast.id} toast={toast} />
      ))}
    </div>
  )
}

function ToastNote({ toast: { id, text, tone, undoUntilMs } }: { toast: Toast }) {
  return (
    <div
      className={classes(
        'pointer-events-auto flex max-w-md min-w-64 animate-rise items-center gap-3 overflow-hidden rounded-md py-1.5 pr-1.5 pl-4 shadow-overlay',
        tone === 'bad' ? 'bg-bad-soft text-bad' : 'bg-ink text-page',
      )}
    >
      <span className="flex-1 text-sm">{text}</span>
      {undoUntilMs !== null && <Undo id={id} untilMs={undoUntilMs} />}
      <IconButton
        size="small"
        icon={X}
        label={parts.dismiss}
        onClick={() => dismiss(id)}
        className={tone === 'bad' ? '' : 'text-page! hover:bg-page/15!'}
      />
    </div>
  )
}

/** The button is many Tab presses away and lives only ten seconds, so it has a key. */
function Undo({ id, untilMs }: { id: number; untilMs: number }) {
  const [leftMs, setLeftMs] = useState(undoMs)
  useShortcut({ keys: 'z', label: parts.undoLast, group: parts.general }, () => undo(id))
  useEffect(() => {
    const timer = setInterval(() => setLeftMs(Math.max(0, untilMs - Date.now())), 250)
    return () => clearInterval(timer)
  }, [untilMs])
  return (
    <>
      <button
        type="button"
        aria-keyshortcuts="z"
        onClick={() => undo(id)}
        className="rounded-sm px-2 py-1 text-sm font-semibold underline underline-offset-3"
      >
        {parts.undo}
      </button>
      <Kbd keys="z" />
      <span aria-hidden className="numbers w-7 text-right text-xs opacity-75">
        {parts.secondsLeft(Math.ceil(leftMs / 1000))}
      </span>
    </>
  )
}
