// Expressions that a page evaluates: which element has the focus, and whether the focus is visible.

/** The HTML of a focused element without a visible focus ring; null if all is well. */
export const ringFault = `(() => {
  let at = document.activeElement
  while (at?.tagName === 'IFRAME' && at.contentDocument?.activeElement) at = at.contentDocument.activeElement
  if (!at || at === at.ownerDocument.body) return null
  const shows = (element, part) => {
    const { outlineStyle, outlineWidth, outlineColor } = getComputedStyle(element, part)
    return outlineStyle !== 'none' && parseFloat(outlineWidth) > 0 && !/^rgba\\(.*, 0\\)$|\\/ 0\\)$|transparent/.test(outlineColor)
  }
  const around = [at, at.parentElement, at.parentElement?.parentElement]
  const active = at.getAttribute('aria-activedescendant')
  if (active) around.push(document.getElementById(active))
  if (around.some((one) => one && (shows(one) || shows(one, '::after')))) return null
  return at.outerHTML.slice(0, 200)
})()`

/** The focused element, shortened. */
export const lastStops = 'document.activeElement?.outerHTML.slice(0, 200)'

/** Focusable elements that are not in `reached`. One radio button of a group is enough. */
export const unreached = `(() => {
  const offered = document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex]')
  const groups = new Set([...reached].filter(({ type }) => type === 'radio').map(({ name }) => name))
  return [...offered]
    .filter((one) => one.tabIndex >= 0 && !one.disabled && one.checkVisibility({ visibilityProperty: true }))
    .filter((one) => !reached.has(one) && !(one.type === 'radio' && groups.has(one.name)))
    .filter((one) => !one.closest('[inert], [aria-hidden=true]'))
    // It passes the focus on to the tab that is open.
    .filter(({ role }) => role !== 'tablist')
    .map((one) => one.outerHTML.slice(0, 200))
})()`
