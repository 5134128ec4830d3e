// Runs in the page that shows mail: fires events on all elements of its frames, and returns the elements that are forbidden.
;(() => {
  const forbidden = [
    ...['script', 'link', 'meta:not([charset])', 'base', 'iframe', 'frame', 'object', 'embed', 'applet', 'form'],
    ...['input', 'button', 'select', 'textarea', 'svg', 'math', 'video', 'audio', 'source', 'template', 'noscript'],
    ...['body style', 'dialog', 'portal', '[id]', '[name]', '[srcset]', '[background]', '[poster]', '[ping]'],
    ...['[popover]', '[contenteditable]', '[autofocus]'],
  ].join(',')
  const events = ['mouseover', 'focus', 'animationstart', 'toggle', 'error', 'load']
  const links = /^(?:href|src|action|formaction|data|xlink:href|target)$/
  const fine = /^(?:https?:\/\/|mailto:|tel:|data:image\/(?:png|jpeg|gif|webp|bmp);base64,|_blank$)/i

  const isBad = ({ name, value }) =>
    name.startsWith('on') ||
    (links.test(name) && !fine.test(value)) ||
    (name === 'src' && !value.startsWith('data:')) ||
    (name === 'style' && /url|position|expression|image|@/i.test(value))

  return [...document.querySelectorAll('iframe')].flatMap(({ contentDocument }) => {
    if (!contentDocument?.body) return ['a frame that cannot be looked into']
    const elements = [...contentDocument.querySelectorAll('body, body *')]
    for (const element of elements) for (const type of events) element.dispatchEvent(new Event(type))
    const bad = elements.filter(({ attributes }) => [...attributes].some(isBad))
    return [...bad, ...contentDocument.querySelectorAll(forbidden)].map(({ outerHTML }) => outerHTML.slice(0, 200))
  })
})()
