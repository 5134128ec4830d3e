// Checks a domain's records, and repeats the check at growing intervals while the page is visible.
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useEffect, useEffectEvent, useState } from 'react'
import { api, read } from '../../api/client.ts'
import { countFound, type Domain, domainQuery, domainsQuery } from './domain-queries.ts'

const second = 1_000
const waitsMs = [15, 30, 60, 120, 300].map((seconds) => seconds * second)

export interface Verification {
  check: () => void
  stop: () => void
  isChecking: boolean
  error: unknown
  /** The result of the last check of this visit. */
  found: Domain | null
  /** Time until the next automatic check, in milliseconds. Null: none is planned. */
  nextInMs: number | null
}

export function useVerification(domainId: string): Verification {
  const queries = useQueryClient()
  const [next, setNext] = useState<{ round: number; atMs: number } | null>(null)
  const look = useMutation({
    mutationFn: (_round: number) =>
      read(api.POST('/v1/domains/{domainId}/verify', { params: { path: { domainId } } })),
    onSuccess: ({ domain }, round) => {
      queries.setQueryData(domainQuery(domainId).queryKey, domain)
      void queries.invalidateQueries({ queryKey: domainsQuery.queryKey })
      const { found, all } = countFound(domain)
      const waitMs = waitsMs[Math.min(round, waitsMs.length - 1)]!
      setNext(found === all ? null : { round: round + 1, atMs: Date.now() + waitMs })
    },
    onError: () => setNext(null),
  })
  const nextInMs = useCountdown(next?.atMs ?? null, () => {
    setNext(null)
    look.mutate(next!.round)
  })
  return {
    check: () => {
      setNext(null)
      look.mutate(0)
    },
    stop: () => setNext(null),
    isChecking: look.isPending,
    error: look.error,
    found: look.data?.domain ?? null,
    nextInMs,
  }
}

/** Returns the remaining time, updated every second. Calls `run` at the end, or when the page is next visible. */
function useCountdown(atMs: number | null, run: () => void): number | null {
  const [nowMs, setNowMs] = useState(Date.now)
  const over = useEffectEvent(run)
  useEffect(() => {
    if (atMs === null) return
    setNowMs(Date.now())
    const timer = setInterval(() => {
      setNowMs(Date.now())
      if (Date.now() >= atMs && !document.hidden) over()
    }, second)
    return () => clearInterval(timer)
  }, [atMs])
  return atMs === null ? null : Math.max(0, atMs - nowMs)
}
