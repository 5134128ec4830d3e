// Names of keys: a rotated key gets a new name, so that the two keys can be distinguished.
import { useQuery } from '@tanstack/react-query'
import { keys } from '../../texts/keys.ts'
import { isInUse } from './key-state.ts'
import { newestKeysQuery } from './queries.ts'

const maxName = 100

/** `Booking server` becomes `Booking server 2`, which becomes `Booking server 3`. */
export function nextName(name: string): string {
  const [, stem = name, number = '1'] = /^(.*\S) (\d{1,6})$/u.exec(name) ?? []
  const ending = ` ${Number(number) + 1}`
  return `${stem.slice(0, maxName - ending.length)}${ending}`
}

/** Returns the hint of the field: `hint`, or a note that a key of this name is in use. */
export function useNameHint(name: string, hint: string): string {
  const { data: newest = [] } = useQuery(newestKeysQuery)
  const isTaken = newest.some((key) => key.name === name.trim() && isInUse(key, Date.now()))
  return isTaken ? keys.nameTaken : hint
}
