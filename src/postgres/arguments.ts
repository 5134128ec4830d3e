// The values of one statement by name, so that TypeScript and SQL need not agree on an order.

export class Arguments {
  readonly values: unknown[]
  readonly #names: string[]

  constructor(named: Record<string, unknown>) {
    this.#names = Object.keys(named)
    this.values = Object.values(named)
  }

  /** Returns a function's arguments in named notation, `at => $1, subjects => $2`: those in `names`, or all. */
  of(names?: string): string {
    return this.#listed(names)
      .map((name) => `${name} => ${this.parameter(name)}`)
      .join(', ')
  }

  /** Returns the assignments of an update: `status = $2, checked_at = $3`. */
  assigned(names: string): string {
    return this.#listed(names)
      .map((name) => `${name} = ${this.parameter(name)}`)
      .join(', ')
  }

  /** Returns an insert of all values as one row: `insert into TABLE (id, name) values ($1, $2)`. */
  insertInto(table: string): string {
    const parameters = this.#names.map((name) => this.parameter(name))
    return `insert into ${table} (${this.#names.join(', ')}) values (${parameters.join(', ')})`
  }

  parameter(name: string): string {
    const index = this.#names.indexOf(name)
    if (index < 0) throw new Error(`a statement has no value that is called ${name}`)
    return `$${index + 1}`
  }

  #listed(names: string | undefined): string[] {
    return names?.trim().split(/\s+/) ?? this.#names
  }
}
