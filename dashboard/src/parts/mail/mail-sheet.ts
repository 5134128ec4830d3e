// Puts a mail's HTML into its frame and sanitizes it again there, so that a fault in one sanitizer lets nothing through.
import createPurifier, { type Config, type WindowLike } from 'dompurify'

export interface Sheet {
  document: Document
  /** Pictures whose bytes are in an attachment. */
  inlineImages: HTMLImageElement[]
}

/**
 * The same elements and attributes as in the service's sanitizer. Removes ids and names, which could shadow document
 * properties.
 */
const config: Config & { RETURN_DOM_FRAGMENT: true } = {
  RETURN_DOM_FRAGMENT: true,
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  USE_PROFILES: { html: true },
  ADD_ATTR: ['target', 'data-remote-src', 'data-cid'],
  FORBID_TAGS: [
    ...['style', 'form', 'input', 'button', 'select', 'option', 'textarea', 'fieldset', 'label', 'datalist'],
    ...[
      'dialog',
      'template',
      'slot',
      'audio',
      'video',
      'source',
      'track',
      'picture',
      'map',
      'area',
      'canvas',
    ],
    ...['meter', 'progress', 'output', 'svg', 'math', 'noscript', 'link', 'meta', 'base', 'title'],
  ],
  FORBID_ATTR: [
    ...[
      'id',
      'name',
      'class',
      'srcset',
      'sizes',
      'poster',
      'background',
      'action',
      'for',
      'usemap',
      'popover',
    ],
    ...['popovertarget', 'popovertargetaction', 'slot', 'is', 'part', 'autofocus', 'tabindex', 'accesskey'],
    ...['contenteditable', 'draggable', 'xmlns'],
  ],
}

const look = `
  :root { color-scheme: light; }
  html { overflow-x: auto; overflow-y: hidden; background: #fff; }
  body {
    box-sizing: border-box; width: fit-content; min-width: 100%; margin: 0; padding: 16px; transform-origin: 0 0; color: #1c1a17; overflow-wrap: anywhere; display: flow-root;
    font: 14px/1.55 ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  }
  img { max-width: 100%; height: auto; }
  img:not([src]) { outline: 1px dashed #c9c4ba; outline-offset: -1px; }
  a { color: #1b5a9e; }
  pre { white-space: pre-wrap; }
  blockquote { margin: 8px 0 8px 4px; padding-left: 12px; border-left: 3px solid #e0dcd4; color: #57534b; }
`

const inner = /^data:image\/(?:png|jpeg|gif|webp|bmp);base64,/i
const outer = /^(?:https?:\/\/|mailto:|tel:)/i

/** Returns null, and writes nothing, if the frame does not hold our empty document. */
export function fillSheet(
  frame: HTMLIFrameElement,
  html: string,
  pictures: 'blocked' | 'loaded',
): Sheet | null {
  const { contentDocument: page, contentWindow: view } = frame
  if (!page?.body || !view || new URL(page.URL).pathname !== '/app/frame') return null
  // Parses in the frame's own window, with scripts off and styles on, exactly as it will be shown.
  const purifier = createPurifier(view as unknown as WindowLike)
  purifier.addHook('afterSanitizeAttributes', secure)
  const content = purifier.sanitize(html, config)
  const style = page.createElement('style')
  style.textContent = look
  page.head.replaceChildren(style)
  page.body.replaceChildren(content)
  const images = [...page.querySelectorAll('img')]
  if (pictures === 'loaded') for (const image of images) loadRemote(image)
  return { document: page, inlineImages: images.filter(({ dataset }) => dataset['cid']) }
}

function secure(node: Element): void {
  const { localName } = node
  if (localName === 'a' || node.hasAttribute('href')) {
    if (!outer.test(node.getAttribute('href') ?? '')) node.removeAttribute('href')
    node.setAttribute('target', '_blank')
    node.setAttribute('rel', 'noopener noreferrer nofollow')
  }
  if (node.hasAttribute('src') && !(localName === 'img' && inner.test(node.getAttribute('src') ?? '')))
    node.removeAttribute('src')
}

function loadRemote(image: HTMLImageElement): void {
  const address = image.dataset['remoteSrc'] ?? ''
  if (!/^https?:\/\//i.test(address)) return
  image.referrerPolicy = 'no-referrer'
  image.src = address
}

const smallestScale = 0.5
/** Room for the scroll bar below content that scrolls sideways. */
const barRoomPx = 16

/** Reports the content's height, now and on every change. Shrinks content that is wider than the frame. */
export function followHeight({ document: page }: Sheet, tell: (px: number) => void): () => void {
  const { body, documentElement: root } = page
  const { style } = body
  const measure = () => {
    style.transform = ''
    const [widthPx, roomPx] = [body.offsetWidth, root.clientWidth]
    const scale = Math.max(smallestScale, Math.min(1, roomPx / Math.max(1, widthPx)))
    if (scale < 1) style.transform = `scale(${scale})`
    const barPx = widthPx * scale > roomPx + 1 ? barRoomPx : 0
    tell(Math.ceil(body.offsetHeight * scale) + barPx)
  }
  const changed = new ResizeObserver(measure)
  changed.observe(body)
  measure()
  return () => changed.disconnect()
}
