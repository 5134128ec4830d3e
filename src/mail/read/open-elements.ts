// The stack of open elements, kept by the rules that browsers build their tree with (HTML, 13.2.6).
import type { Element } from './style/selector.ts'
import type { Visibility } from './style/visibility.ts'

export interface OpenElement extends Element {
  parent: OpenElement | null
  previous: OpenElement | null
  lastChild: OpenElement | null
  visibility: Visibility
  /** Its content is not text, as in a picture. */
  isUnseen: boolean
}

const split = (names: string) => new Set(names.split(' '))
const voids = split(
  'area base basefont bgsound br col embed frame hr img input keygen link meta param source track wbr',
)
const special = split(
  'address applet area article aside base basefont bgsound blockquote body br button caption center col colgroup dd details dir div dl dt embed fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html iframe img input keygen li link listing main marquee menu meta nav noembed noframes noscript object ol p param plaintext pre script search section select source style summary table tbody td template textarea tfoot th thead title tr track ul wbr xmp',
)
const formatting = split('a b big code em font i nobr s small strike strong tt u')
const closesParagraph = split(
  'address article aside blockquote center dd details dialog dir div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr li listing main menu nav ol p plaintext pre search section summary table ul',
)
const headings = split('h1 h2 h3 h4 h5 h6')
const scopes = split('applet caption html table td th marquee object template')
const listScopes = split('applet caption html table td th marquee object template ol ul')
const buttonScopes = split('applet caption html table td th marquee object template button')
const tableScopes = split('html table template')
const tableRows = split('table tbody thead tfoot tr')
const tableParts = split('caption colgroup col tbody thead tfoot tr td th')
const cells = split('td th caption')
const markers = split('applet marquee object template td th caption')

const maxSame = 3
/** Cost of reopening an element, in steps. */
const stepsOfElement = 8

type Boundary = 'scope' | 'list' | 'button' | 'table' | 'special'

type Create = (
  name: string,
  attributes: ReadonlyMap<string, string>,
  parent: OpenElement,
  previous: OpenElement | null,
) => OpenElement

interface Formatting {
  element: OpenElement
  /** Its name and attributes. */
  key: string
  /** False after a block closed the element, until it is reopened. */
  isOpen: boolean
}

/** A stack. Each step takes the same time at any depth, except the steps that `charge` counts. */
export class OpenElements {
  readonly #stack: OpenElement[]
  /** Indexes in the stack, by element name. */
  readonly #depths = new Map<string, number[]>()
  readonly #boundaries: Record<Boundary, number[]> = {
    scope: [0],
    list: [0],
    button: [0],
    table: [0],
    special: [0],
  }
  readonly #allBoundaries = Object.values(this.#boundaries)
  readonly #formatting: (Formatting | 'marker')[] = []
  readonly #create: Create
  readonly #onClose: (element: OpenElement) => void
  readonly #charge: (steps: number) => void

  constructor(
    body: OpenElement,
    deps: { create: Create; onClose(element: OpenElement): void; charge(steps: number): void },
  ) {
    this.#stack = [body]
    this.#create = deps.create
    this.#onClose = deps.onClose
    this.#charge = deps.charge
  }

  get current(): OpenElement {
    return this.#stack.at(-1)!
  }

  /** The parent of new text. Browsers move text that is in a table but outside its cells to before the table. */
  textParent(): OpenElement {
    this.#reopen()
    return this.#fosterParent()
  }

  /** Opens the element and closes the elements that it ends. Null if browsers ignore the tag. */
  open(name: string, attributes: ReadonlyMap<string, string>): OpenElement | null {
    if (tableParts.has(name)) {
      if (!this.#makeRoomInTable(name)) return null
    } else this.#makeRoom(name)
    const isFormatting = formatting.has(name)
    if (isFormatting || !special.has(name)) this.#reopen()
    const parent = tableParts.has(name) ? this.current : this.#fosterParent()
    const element = this.#create(name, attributes, parent, parent.lastChild)
    parent.lastChild = element
    if (voids.has(name)) return element
    this.#push(element)
    if (isFormatting) this.#addFormatting(element)
    if (markers.has(name)) this.#formatting.push('marker')
    return element
  }

  /** Closes the elements that the end tag ends. Returns whether there were any. */
  close(name: string): boolean {
    if (formatting.has(name)) return this.#closeFormatting(name)
    if (headings.has(name)) return this.#closeHeading()
    const boundary = this.#boundaryOf(name)
    const at = this.#nearest(name)
    if (at <= 0 || at < this.#boundaries[boundary].at(-1)!) return false
    this.#popTo(at)
    return true
  }

  #boundaryOf(name: string): Boundary {
    if (name === 'p') return 'button'
    if (name === 'li') return 'list'
    if (name === 'table' || tableParts.has(name)) return 'table'
    return special.has(name) ? 'scope' : 'special'
  }

  #nearest(name: string): number {
    return this.#depths.get(name)?.at(-1) ?? -1
  }

  #isInScope(name: string, boundary: Boundary): boolean {
    const at = this.#nearest(name)
    return at > 0 && at >= this.#boundaries[boundary].at(-1)!
  }

  #makeRoom(name: string): void {
    if (closesParagraph.has(name) && this.#isInScope('p', 'button')) this.#popTo(this.#nearest('p'))
    if (name === 'li' && this.#isInScope('li', 'list')) this.#popTo(this.#nearest('li'))
    if (name === 'dd' || name === 'dt')
      for (const other of ['dd', 'dt']) if (this.#isInScope(other, 'scope')) this.#popTo(this.#nearest(other))
    if (headings.has(name) && headings.has(this.current.name)) this.#pop()
    if ((name === 'a' || name === 'nobr') && this.#hasFormatting(name)) this.#closeFormatting(name)
    if ((name === 'option' || name === 'optgroup') && this.current.name === 'option') this.#pop()
    if (name === 'table' && tableRows.has(this.current.name)) this.close('table')
  }

  /** Closes the cell, row or group that a table part ends, and opens the parents that it needs. False without a table. */
  #makeRoomInTable(name: string): boolean {
    const table = this.#nearest('table')
    if (table < 0 || table < this.#nearest('template')) return false
    for (const cell of cells) if (this.#nearest(cell) > table) this.#popTo(this.#nearest(cell))
    const needed = name === 'td' || name === 'th' ? 'tr' : name === 'tr' ? 'tbody' : 'table'
    if (needed === 'tr' && this.#nearest('tr') > table) this.#popTo(this.#nearest('tr') + 1)
    else if (needed === 'tbody') {
      const group = Math.max(...['tbody', 'thead', 'tfoot'].map((part) => this.#nearest(part)))
      this.#popTo(group > table ? group + 1 : table + 1)
    } else if (needed === 'table') this.#popTo(table + 1)
    if (needed === 'tr' && this.current.name !== 'tr') this.open('tr', new Map())
    if (needed === 'tbody' && this.current.name === 'table') this.open('tbody', new Map())
    return true
  }

  #fosterParent(): OpenElement {
    if (!tableRows.has(this.current.name)) return this.current
    const table = this.#nearest('table')
    return table > 0 ? this.#stack[table - 1]! : this.current
  }

  #push(element: OpenElement): void {
    const { name } = element
    const at = this.#stack.push(element) - 1
    const depths = this.#depths.get(name)
    if (depths) depths.push(at)
    else this.#depths.set(name, [at])
    if (scopes.has(name)) this.#boundaries.scope.push(at)
    if (listScopes.has(name)) this.#boundaries.list.push(at)
    if (buttonScopes.has(name)) this.#boundaries.button.push(at)
    if (tableScopes.has(name)) this.#boundaries.table.push(at)
    if (special.has(name)) this.#boundaries.special.push(at)
  }

  #unstack(): OpenElement {
    const element = this.#stack.pop()!
    const at = this.#stack.length
    this.#depths.get(element.name)!.pop()
    for (const depths of this.#allBoundaries) if (depths.at(-1) === at) depths.pop()
    return element
  }

  #pop(): void {
    const element = this.#unstack()
    if (markers.has(element.name))
      this.#formatting.length = Math.max(0, this.#formatting.lastIndexOf('marker'))
    else if (formatting.has(element.name)) {
      const entry = this.#formatting.findLast((other) => other !== 'marker' && other.element === element)
      if (entry && entry !== 'marker') entry.isOpen = false
    }
    this.#onClose(element)
  }

  #popTo(at: number): void {
    while (this.#stack.length > Math.max(1, at)) this.#pop()
  }

  #hasFormatting(name: string): boolean {
    const at = this.#formattingAt(name)
    return at >= 0 && this.#formatting[at] !== 'marker'
  }

  /** HTML, 13.2.4.3: if more than three entries are equal, the first one is dropped. */
  #addFormatting(element: OpenElement): void {
    const key = [element.name, ...element.attributes].join('\0')
    let first = -1
    let count = 0
    let at = this.#formatting.length - 1
    for (; at >= 0; at--) {
      const entry = this.#formatting[at]!
      if (entry === 'marker') break
      if (entry.key !== key) continue
      first = at
      count++
    }
    this.#charge((this.#formatting.length - at) >> 4)
    if (count >= maxSame) this.#formatting.splice(first, 1)
    this.#formatting.push({ element, key, isOpen: true })
  }

  /** Index of the last entry with this name, or of a later marker. -1 if there is neither. */
  #formattingAt(name: string): number {
    const at = this.#formatting.findLastIndex((entry) => entry === 'marker' || entry.element.name === name)
    this.#charge((this.#formatting.length - at) >> 4)
    return at
  }

  /** Reopens the formatting that a block closed, because it continues after the block. */
  #reopen(): void {
    const last = this.#formatting.at(-1)
    if (last === undefined || last === 'marker' || last.isOpen) return
    let first = this.#formatting.length
    for (; first > 0; first--) {
      const entry = this.#formatting[first - 1]!
      if (entry === 'marker' || entry.isOpen) break
    }
    this.#charge((this.#formatting.length - first) * stepsOfElement)
    for (const entry of this.#formatting.slice(first) as Formatting[]) {
      const parent = this.#fosterParent()
      const { name, attributes } = entry.element
      entry.element = this.#create(name, attributes, parent, parent.lastChild)
      entry.isOpen = true
      parent.lastChild = entry.element
      this.#push(entry.element)
    }
  }

  /** A short form of the adoption agency algorithm: elements opened inside stay open, now outside of it. */
  #closeFormatting(name: string): boolean {
    const at = this.#formattingAt(name)
    const entry = this.#formatting[at]
    if (entry === undefined || entry === 'marker') return this.#closeOther(name)
    this.#formatting.splice(at, 1)
    if (!entry.isOpen) return false
    const depth = this.#stack.lastIndexOf(entry.element)
    this.#charge((this.#stack.length - depth) * stepsOfElement)
    if (depth < this.#boundaries.scope.at(-1)!) return false
    const within: OpenElement[] = []
    while (this.#stack.length > depth + 1) within.push(this.#unstack())
    this.#onClose(this.#unstack())
    for (const element of within.reverse()) this.#readopt(element)
    return true
  }

  #closeOther(name: string): boolean {
    const at = this.#nearest(name)
    if (at <= 0 || at < this.#boundaries.special.at(-1)!) return false
    this.#popTo(at)
    return true
  }

  #readopt(element: OpenElement): void {
    const parent = this.current
    const { visibility } = this.#create(element.name, element.attributes, parent, element.previous)
    element.parent = parent
    element.visibility = visibility
    this.#push(element)
  }

  #closeHeading(): boolean {
    const at = Math.max(...[...headings].map((name) => this.#nearest(name)))
    if (at <= 0 || at < this.#boundaries.scope.at(-1)!) return false
    this.#popTo(at)
    return true
  }
}
