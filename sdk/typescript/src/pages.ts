// The pages of a list, requested as they are needed.

/** Iterates over the items of a list. Nothing is requested before the iteration begins. */
export class Pages<Item, Page extends { nextCursor: string | null }> implements AsyncIterable<Item> {
  readonly #items: keyof Page
  readonly #load: (cursor: string | undefined) => Promise<Page>

  constructor(items: keyof Page, load: (cursor: string | undefined) => Promise<Page>) {
    this.#items = items
    this.#load = load
  }

  /** Returns the first page. */
  first(): Promise<Page> {
    return this.#load(undefined)
  }

  /** Iterates over whole pages. */
  async *pages(): AsyncGenerator<Page, void> {
    for (let cursor: string | undefined; ; ) {
      const page = await this.#load(cursor)
      yield page
      if (!page.nextCursor) return
      cursor = page.nextCursor
    }
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Item, void> {
    for await (const page of this.pages()) yield* page[this.#items] as Iterable<Item>
  }
}
