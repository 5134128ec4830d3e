// A draft, kept in this window until it is sent or discarded; a page reload loses only its files.
import { useEffect, useState } from 'react'
import type { Mailbox } from '../mail-queries.ts'

export interface Draft {
  /** The idempotency key of the send, made once, so that a retry sends nothing twice. */
  key: string
  to: Mailbox[]
  cc: Mailbox[]
  bcc: Mailbox[]
  subject: string
  text: string
  /** Null if the draft has no HTML. */
  html: string | null
  fileNames: string[]
}

export interface DraftState {
  draft: Draft
  change: (change: Partial<Draft>) => void
  files: readonly File[]
  setFiles: (files: readonly File[]) => void
  /** Files that were lost in a page reload. */
  lostNames: readonly string[]
  forget: () => void
}

const prefix = 'posthorn.draft.'
const filesOf = new Map<string, readonly File[]>()

/** Returns the draft of this name, restored if it was written to before, else made from `begin`. */
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

/** Returns whether the draft was changed. */
export function isTouched(draft: Draft, begin: Partial<Draft>): boolean {
  const begun = { ...newDraft(begin), key: draft.key }
  return JSON.stringify(draft) !== JSON.stringify(begun)
}

function read(name: string): Draft | null {
  try {
    const text = sessionStorage.getItem(prefix + name)
    return text === null ? null : (JSON.parse(text) as Draft)
  } catch {
    // Storage is blocked, or another version of the pages wrote the draft. A new draft starts.
    return null
  }
}

function write(name: string, draft: Draft): void {
  try {
    sessionStorage.setItem(prefix + name, JSON.stringify(draft))
  } catch {
    // Storage is blocked or full. The draft lives as long as its form.
  }
}
