// Buttons, links that look like buttons, and icon buttons.
import { Link } from '@tanstack/react-router'
import { LoaderCircle, type LucideIcon } from 'lucide-react'
import type { ButtonHTMLAttributes, MouseEvent, ReactNode, Ref } from 'react'
import { classes } from '../classes.ts'
import { toast } from '../toasts.ts'

type Variant = 'primary' | 'plain' | 'quiet' | 'danger'
type Size = 'small' | 'medium'

const styles: Record<Variant, string> = {
  primary: 'bg-accent text-on-accent hover:bg-accent-hover border border-transparent font-medium',
  plain: 'bg-surface text-ink border border-line-strong hover:bg-hover font-medium',
  quiet: 'text-muted hover:text-ink hover:bg-hover border border-transparent',
  danger: 'bg-surface text-bad border border-line-strong hover:bg-bad-soft hover:border-bad/40 font-medium',
}
const sizes: Record<Size, string> = {
  small: 'h-7 px-2.5 text-sm gap-1.5',
  medium: 'h-9 px-3.5 text-base gap-2',
}
const shape =
  'inline-flex shrink-0 items-center justify-center rounded-md whitespace-nowrap select-none aria-disabled:opacity-55 aria-disabled:cursor-not-allowed'

interface Look {
  variant?: Variant | undefined
  size?: Size | undefined
  icon?: LucideIcon | undefined
}

export interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement>, Look {
  /** An action is running. The button refuses presses, keeps its width, and announces it. */
  busy?: boolean | undefined
  /** The reason why this person cannot press the button. It stays focusable and announces the reason. */
  refusal?: string | undefined
  ref?: Ref<HTMLButtonElement>
}

/** A button. `type` defaults to `button`. A disabled button keeps its focus. */
export function Button({
  variant = 'plain',
  size = 'medium',
  icon: Icon,
  busy,
  disabled,
  refusal,
  children,
  ...rest
}: ButtonProps) {
  return (
    <button
      type="button"
      aria-busy={busy || undefined}
      {...rest}
      {...(disabled || busy ? unpressed(null) : refusal && unpressed(refusal))}
      className={classes(shape, styles[variant], sizes[size], rest.className)}
    >
      {busy ? (
        <LoaderCircle size={15} className="animate-spin" aria-hidden />
      ) : (
        Icon && <Icon size={15} aria-hidden />
      )}
      {children}
    </button>
  )
}

/** Not `disabled`, because that would take the focus away from the person who just pressed it. */
function unpressed(reason: string | null): ButtonHTMLAttributes<HTMLButtonElement> {
  const refuse = (event: MouseEvent) => {
    event.preventDefault()
    if (reason) toast(reason)
  }
  return { 'aria-disabled': true, onClick: refuse, ...(reason && { title: reason }) }
}

/** A link to another page that looks like a button. */
export function ButtonLink({
  variant = 'plain',
  size = 'medium',
  icon: Icon,
  to,
  children,
}: Look & { to: string; children: ReactNode }) {
  return (
    <Link to={to} className={classes(shape, styles[variant], sizes[size])}>
      {Icon && <Icon size={15} aria-hidden />}
      {children}
    </Link>
  )
}

/** A button with an icon alone. `label` is its accessible name and its tooltip. */
export function IconButton({
  label,
  icon: Icon,
  size = 'medium',
  disabled,
  refusal,
  ...rest
}: Omit<ButtonProps, 'variant' | 'icon' | 'children' | 'busy'> & { label: string; icon: LucideIcon }) {
  return (
    <button
      type="button"
      aria-label={label}
      title={label}
      {...rest}
      {...(disabled ? unpressed(null) : refusal && unpressed(refusal))}
      className={classes(shape, styles.quiet, size === 'small' ? 'size-7' : 'size-9', rest.className)}
    >
      <Icon size={size === 'small' ? 15 : 17} aria-hidden />
    </button>
  )
}
