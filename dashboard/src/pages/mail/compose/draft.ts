// What is being written, kept in this window until it is sent or thrown away; its files only while the page is not reloaded.
import { useEffect, useState } from 'react'
import type { Mailbox } from '../mail-queries.ts'

export interface Draft {
  /** The idempotency key of its sending: made once, so that a second try sends nothing twice. */
  key: string
  to: Mailbox[]
  cc: Mailbox[]
  bcc: Mailbox[]
  subject: string
  text: string
  /** Null: it has no HTML of its own. */
  html: string | null
  fileNames: string[]
}

export interface DraftState {
  draft: Draft
  change: (change: Partial<Draft>) => void
  files: readonly File[]
  setFiles: (files: readonly File[]) => void
  /** Files that a reload of the page has cost. */
  lostNames: readonly string[]
  forget: () => void
}

const prefix = 'posthorn.draft.'
const filesOf = new Map<string, readonly File[]>()

/** The draft of this name; what was written in it before, or else `begin`. */
export function useDraft(name: string, begin: Partial<Draft>): DraftState {
  const [draft, setDraft] = useState(() => read(name) ?? newDraft(begin))
  const [files, setAttached] = useState(filesOf.get(name) ?? [])
  const [lostNames, setLostNames] = useState(() =>
    draft.fileNames.filter((lost) => !files.some((file) => file.name === lost)),
  )
  useEffect(() => {
    if (isTouched(draft, begin)) write(name, draft)
  }, [name, draft, begin])
  const setFiles = (next: readonly File[]) => {
    filesOf.set(name, next)
    setAttached(next)
    setLostNames([])
    setDraft((before) => ({ ...before, fileNames: next.map((file) => file.name) }))
  }
  const forget = () => {
    filesOf.delete(name)
    sessionStorage.removeItem(prefix + name)
  }
  const change = (changes: Partial<Draft>) => setDraft((before) => ({ ...before, ...changes }))
  return { draft, change, files, setFiles, lostNames, forget }
}

function newDraft(begin: Partial<Draft>): Draft {
  const empty = { to: [], cc: [], bcc: [], subject: '', text: '', html: null, fileNames: [] }
  return { ...empty, ...begin, key: crypto.randomUUID() }
}

/** Whether something was written into it. */
export function isTouched(draft: Draft, begin: Partial<Draft>): boolean {
  const begun = { ...newDraft(begin), key: draft.key }
  return JSON.stringify(draft) !== JSON.stringify(begun)
}

function read(name: string): Draft | null {
  try {
    const text = sessionStorage.getItem(prefix + name)
    return text === null ? null : (JSON.parse(text) as Draft)
  } catch {
    // Storage that is closed, or what another version of the pages wrote: one begins anew.
    return null
  }
}

function write(name: string, draft: Draft): void {
  try {
    sessionStorage.setItem(prefix + name, JSON.stringify(draft))
  } catch {
    // Storage that is closed or full: the draft lives as long as its form.
  }
}
