// The keys of a list: `j` and `k` move the focus along the rows, and Enter opens the row, because it is a link.
import type { RefObject } from 'react'
import { lists } from '../../texts/lists.ts'
import { useShortcut } from '../shortcut.ts'

/** Rows are the elements with `data-row`, in their order. */
export function useListKeys(list: RefObject<HTMLElement | null>): void {
  useShortcut({ keys: 'j', label: lists.next, group: lists.group }, () => move(list.current, 1))
  useShortcut({ keys: 'k', label: lists.previous, group: lists.group }, () => move(list.current, -1))
}

function move(list: HTMLElement | null, step: 1 | -1): void {
  const rows = [...(list?.querySelectorAll<HTMLElement>('[data-row]') ?? [])]
  const at = rows.findIndex((row) => row.contains(document.activeElement))
  const next = rows[at === -1 ? (step === 1 ? 0 : rows.length - 1) : at + step]
  next?.focus()
  next?.scrollIntoView({ block: 'nearest' })
}
