// Compares a live answer with the JSON that a page shows for it.
import assert from 'node:assert/strict'

const isId = (text: string) =>
  /^(?:[a-z]{3}_[a-f0-9]{24}|[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12})$/.test(text)
const isTime = (text: string) => /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(text)
const cut = '…'

/** Throws unless they agree. `…` matches anything. Ids on the page are mapped to live ids, which `ids` holds. */
export function compareAnswer(shown: unknown, live: unknown, ids: Map<string, string>, at = ''): void {
  if (shown === cut) return
  if (typeof shown === 'string' && typeof live === 'string' && isId(shown) && isId(live)) {
    assert.equal(ids.get(shown) ?? live, live, at)
    ids.set(shown, live)
  } else if (typeof shown === 'string' && isTime(shown)) assert.ok(isTime(String(live)), at)
  else if (Array.isArray(shown) && Array.isArray(live)) {
    assert.equal(live.length, shown.length, at)
    for (const [index, member] of shown.entries()) compareAnswer(member, live[index], ids, `${at}/${index}`)
  } else if (shown !== null && typeof shown === 'object') {
    const { [cut]: isCut, ...members } = shown as Record<string, unknown>
    const there = live as Record<string, unknown>
    if (!isCut) assert.deepEqual(Object.keys(there).sort(), Object.keys(members).sort(), at)
    for (const [name, member] of Object.entries(members))
      compareAnswer(member, there?.[name], ids, `${at}/${name}`)
  } else assert.equal(live, shown, at)
}
