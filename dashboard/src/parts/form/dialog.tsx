// A question or a form above the page, which takes the focus, gives it back, and closes with Escape.
import { X } from 'lucide-react'
import { Dialog as Primitive } from 'radix-ui'
import { type ReactNode, useRef } from 'react'
import { parts } from '../../texts/parts.ts'
import { classes } from '../classes.ts'
import { IconButton } from './button.tsx'

/** Focuses the first field. The default would be the close button, which comes first. */
function focusFirstField(event: Event): void {
  const first = (event.currentTarget as HTMLElement).querySelector<HTMLElement>(
    'input:not([type=radio], [type=checkbox], [type=file], :disabled), textarea:not(:disabled)',
  )
  if (!first) return
  event.preventDefault()
  first.focus()
}

/**
 * The element that opened the dialog. A dialog opened from another dialog keeps that dialog's opener, because the
 * button in it is gone.
 */
let opener: HTMLElement | null = null

function findOpener(): void {
  const { activeElement } = document
  if (document.querySelector('[role=dialog]')) return
  // For a menu item it is the menu's button, because the item disappears with the menu.
  const menu = activeElement?.closest('[role=menu]')
  const found = menu ? document.getElementById(menu.getAttribute('aria-labelledby') ?? '') : activeElement
  opener = found instanceof HTMLElement && found !== document.body ? found : null
}

/** Returns the focus to the opener. If the opener is gone, as a deleted row is, focuses the heading as on a new page. */
function focusOpener(event: Event): void {
  // Do not move the focus if it is already elsewhere, such as in a dialog that opened next: its field would get its text
  // selected and overwritten.
  const hasGoneOn = document.activeElement !== document.body
  const place = opener?.isConnected ? opener : document.querySelector<HTMLElement>('main h1')
  if (!hasGoneOn && !place) return
  event.preventDefault()
  if (!hasGoneOn) place?.focus()
}

interface DialogProps {
  open: boolean
  onClose: () => void
  title: string
  lead?: ReactNode
  width?: 'medium' | 'large'
  children: ReactNode
  /** Buttons at the bottom, the main one last. */
  footer?: ReactNode
}

export function Dialog({ open, onClose, title, lead, width = 'medium', children, footer }: DialogProps) {
  const wasOpen = useRef(false)
  // Runs before the dialog's content takes the focus.
  if (open && !wasOpen.current) findOpener()
  wasOpen.current = open
  return (
    <Primitive.Root open={open} onOpenChange={(isOpen) => !isOpen && onClose()}>
      <Primitive.Portal>
        <Primitive.Overlay className="fixed inset-0 z-40 animate-fade bg-[rgb(0_0_0/0.42)]" />
        <Primitive.Content
          {...(lead ? {} : { 'aria-describedby': undefined })}
          onOpenAutoFocus={focusFirstField}
          onCloseAutoFocus={focusOpener}
          className={classes(
            'fixed inset-x-0 bottom-0 z-50 mx-auto flex max-h-[88dvh] animate-rise flex-col rounded-t-lg bg-surface shadow-overlay',
            'sm:top-[12vh] sm:bottom-auto sm:max-h-[76vh] sm:rounded-lg',
            width === 'large' ? 'sm:w-[min(760px,94vw)]' : 'sm:w-[min(480px,94vw)]',
          )}
        >
          <header className="flex items-start justify-between gap-4 px-5 pt-4">
            <div className="min-w-0">
              <Primitive.Title className="text-lg font-semibold">{title}</Primitive.Title>
              {lead && (
                <Primitive.Description className="text-balance text-muted">{lead}</Primitive.Description>
              )}
            </div>
            <Primitive.Close asChild>
              <IconButton size="small" icon={X} label={parts.close} />
            </Primitive.Close>
          </header>
          <div className="min-h-0 flex-1 overflow-y-auto px-5 py-4">{children}</div>
          {footer && (
            <footer className="flex flex-wrap justify-end gap-2 border-t px-5 py-3">{footer}</footer>
          )}
        </Primitive.Content>
      </Primitive.Portal>
    </Primitive.Root>
  )
}
