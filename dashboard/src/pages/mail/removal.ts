// Deletes messages after ten seconds for an undo, during which they are only hidden.

import { type QueryClient, useQueryClient } from '@tanstack/react-query'
import { useSyncExternalStore } from 'react'
import { api, read } from '../../api/client.ts'
import { wordsOf } from '../../parts/error-note.tsx'
import { toast, toastUndoable } from '../../parts/toasts.ts'
import { mail } from '../../texts/mail.ts'
import { forgetThread, threadQuery } from './mail-queries.ts'

let hidden: ReadonlySet<string> = new Set()
const watchers = new Set<() => void>()

function change(next: ReadonlySet<string>): void {
  hidden = next
  for (const watcher of watchers) watcher()
}

const hide = (ids: readonly string[]) => change(new Set([...hidden, ...ids]))
const show = (ids: readonly string[]) => change(new Set([...hidden].filter((id) => !ids.includes(id))))

/** The ids of threads and messages that are hidden because they are being deleted. */
export function useHidden(): ReadonlySet<string> {
  return useSyncExternalStore(
    (watcher) => {
      watchers.add(watcher)
      return () => watchers.delete(watcher)
    },
    () => hidden,
  )
}

interface Removal {
  threadId: string
  messageIds: readonly string[]
  what: 'thread' | 'message'
}

function removeLater(queries: QueryClient, { threadId, messageIds, what }: Removal): void {
  const ids = what === 'thread' ? [threadId, ...messageIds] : messageIds
  hide(ids)
  const commit = async () => {
    // All requests must start at once, because the page may be closing.
    const answers = await Promise.allSettled(messageIds.map(deleteMessage))
    const failed = answers.find(({ status }) => status === 'rejected')
    if (failed) toast(mail.notDeleted(wordsOf((failed as PromiseRejectedResult).reason).title), 'bad')
    else if (what === 'thread') forgetThread(queries, threadId)
    if (what === 'message' || failed) await queries.invalidateQueries({ queryKey: ['thread', threadId] })
    await queries.invalidateQueries({ queryKey: ['found'] })
    show(ids)
  }
  toastUndoable(what === 'thread' ? mail.threadDeleted : mail.messageDeleted, {
    commit: () => void commit(),
    undone: () => show(ids),
  })
}

function deleteMessage(messageId: string): Promise<unknown> {
  return read(api.DELETE('/v1/messages/{messageId}', { params: { path: { messageId } }, keepalive: true }))
}

/** Returns a function that deletes all messages that the thread has at the time of the call. */
export function useRemoveThread(): (threadId: string) => Promise<void> {
  const queries = useQueryClient()
  return async (threadId) => {
    try {
      const { pages } = await queries.fetchInfiniteQuery({ ...threadQuery(threadId), pages: 1_000 })
      const messageIds = pages.flatMap(({ messages }) => messages.map(({ id }) => id))
      removeLater(queries, { threadId, messageIds, what: 'thread' })
    } catch (error) {
      toast(mail.notDeleted(wordsOf(error).title), 'bad')
    }
  }
}

export function useRemoveMessage(): (message: { id: string; threadId: string }) => void {
  const queries = useQueryClient()
  return ({ id, threadId }) => removeLater(queries, { threadId, messageIds: [id], what: 'message' })
}
