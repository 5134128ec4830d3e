// Classifies addresses by lists: disposable domains, free providers, roles, and misspelled provider names.
import { getPublicSuffix } from 'tldts'
import { freeProviders } from './free-providers.ts'
import { foldRole, roleNames } from './roles.ts'
import { suggestProvider } from './suggest-provider.ts'

/** The operator's additions to a list and removals from it. Domains are A-labels, roles have the form of `foldRole`. */
export interface ListChange {
  added: ReadonlySet<string>
  removed: ReadonlySet<string>
}

export interface ListChanges {
  disposable: ListChange
  freeProviders: ListChange
  roles: ListChange
}

type Names = ReadonlySet<string>

export class AddressLists {
  readonly #disposable: Names[]
  readonly #freeProviders: Names[]
  readonly #changes: ListChanges

  /** Use `loadAddressLists`, which loads the lists. */
  constructor(disposable: Names[], changes: ListChanges) {
    this.#disposable = [...disposable, changes.disposable.added]
    this.#freeProviders = [freeProviders, changes.freeProviders.added]
    this.#changes = changes
  }

  /** Whether the domain or a parent offers disposable mailboxes. A domain that the operator removed never does. */
  isDisposable(domain: string): boolean {
    for (const name of withParents(domain)) {
      if (this.#changes.disposable.removed.has(name)) return false
      if (this.#disposable.some((list) => list.has(name))) return true
    }
    return false
  }

  isFreeProvider(domain: string): boolean {
    return has(this.#freeProviders, this.#changes.freeProviders, domain)
  }

  isRole(localPart: string): boolean {
    return has([roleNames, this.#changes.roles.added], this.#changes.roles, foldRole(localPart))
  }

  /** The provider's domain that was probably meant, or null. Misspellings owned by strangers are mostly disposable too. */
  suggestDomain(domain: string): string | null {
    return this.isFreeProvider(domain) ? null : suggestProvider(domain)
  }
}

function has(lists: Names[], { removed }: ListChange, name: string): boolean {
  return !removed.has(name) && lists.some((list) => list.has(name))
}

/** The domain and its parents, nearest first, without public suffixes, which unrelated owners share. */
function* withParents(domain: string): Generator<string> {
  yield domain
  const suffixLength = getPublicSuffix(domain, { allowPrivateDomains: true })?.length ?? 0
  for (let dot = domain.indexOf('.'); dot !== -1; dot = domain.indexOf('.', dot + 1)) {
    if (domain.length - dot - 1 > suffixLength) yield domain.slice(dot + 1)
  }
}

/** Loads the lists: 61,000 names, 1 MB of program that takes a moment and stays in memory. Call it only if needed. */
export async function loadAddressLists(changes: ListChanges): Promise<AddressLists> {
  const [{ default: mailchecker }, { disposableEmailBlocklistSet }] = await Promise.all([
    import('mailchecker'),
    import('disposable-email-domains-js'),
  ])
  return new AddressLists([mailchecker.blacklist(), disposableEmailBlocklistSet()], changes)
}
