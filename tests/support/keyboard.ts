// A keyboard without a mouse: tests act by keys alone, and each focus stop on the way is checked.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import type { Browser, Locator, Page } from 'playwright-core'
import { audit } from './dashboard.ts'
import { lastStops, ringFault, unreached } from './focus.ts'
import { until } from './until.ts'

export type Role = Parameters<Page['getByRole']>[0]
type Name = string | RegExp

/** More stops than any page has. */
const mostStops = 250

export interface KeyboardOptions {
  viewport?: { width: number; height: number }
  /** Passkeys are made and used by a device that always agrees. */
  hasPasskeys?: boolean
}

export class Keyboard {
  readonly #page: Page
  /** Changing operations that succeeded: `POST /app/v1/keys`. */
  readonly done = new Set<string>()
  /** Console errors and exceptions. */
  readonly complaints: string[] = []
  /** Focus stops without a visible focus. */
  readonly hiddenStops = new Set<string>()
  #pointed = 0

  private constructor(page: Page) {
    this.#page = page
    page.setDefaultTimeout(20_000)
    page.on('console', (message) => {
      if (message.type() === 'error') this.complaints.push(`${message.text()} ${message.location().url}`)
    })
    page.on('pageerror', (error) => void this.complaints.push(String(error)))
    // With this listener, the browser sends file requests to the page and opens no dialog.
    page.on('filechooser', () => {})
    page.on('response', (response) => {
      const method = response.request().method()
      if (response.ok() && !['GET', 'HEAD'].includes(method))
        this.done.add(`${method} ${new URL(response.url()).pathname}`)
    })
  }

  /** A window of its own, in which no person is signed in. */
  static async open(browser: Browser, base: string, options: KeyboardOptions = {}): Promise<Keyboard> {
    const { viewport = { width: 1280, height: 900 }, hasPasskeys } = options
    const context = await browser.newContext({ baseURL: base, viewport, reducedMotion: 'reduce' })
    await context.grantPermissions(['clipboard-read', 'clipboard-write'])
    const page = await context.newPage()
    const keyboard = new Keyboard(page)
    await page.exposeFunction('wasPointed', () => keyboard.#pointed++)
    await page.addInitScript("addEventListener('pointerdown', () => wasPointed(), true)")
    if (hasPasskeys) await agreeToPasskeys(page)
    return keyboard
  }

  /** Types an address into the browser's address bar. */
  async open(path: string, title?: Name): Promise<void> {
    await this.#page.goto(path)
    if (title) await this.title(title)
  }

  async press(...keys: string[]): Promise<void> {
    for (const key of keys) await this.#page.keyboard.press(key)
  }

  async type(text: string): Promise<void> {
    await this.#page.keyboard.type(text)
  }

  /** Moves to a control by Tab, or backwards if that is shorter. */
  async to(role: Role, name: Name, key: 'Tab' | 'Shift+Tab' = 'Tab'): Promise<void> {
    await this.#go(this.#find(role, name), `${role} ${name}`, key)
  }

  /** Moves to a control by Tab and presses it. */
  async use(role: Role, name: Name, key: 'Tab' | 'Shift+Tab' = 'Tab'): Promise<void> {
    await this.to(role, name, key)
    await this.press('Enter')
  }

  /** Moves to the summary of a folded section, and unfolds it. */
  async unfold(text: string): Promise<void> {
    await this.#go(this.#page.locator('summary', { hasText: text }), `summary ${text}`, 'Tab')
    await this.press('Enter')
  }

  /** Moves along the rows of a list to this row, and opens it. */
  async row(name: Name): Promise<void> {
    const wanted = this.#find('link', name)
    await wanted.first().waitFor()
    for (const key of [...'jjjjjj', ...'kkkkkkkkkkkk']) {
      if (await this.#isFocused(wanted)) break
      await this.press(key)
      await this.#judgeStop()
    }
    await this.stands('link', name)
    await this.press('Enter')
  }

  /** Moves to a field and replaces its content. */
  async fill(label: Name, text: string): Promise<void> {
    await this.#go(this.#page.getByLabel(label, { exact: true }), `the field ${label}`, 'Tab')
    await this.press('Control+a')
    await this.type(text)
  }

  /** Moves to a checkbox and presses Space. */
  async check(label: Name): Promise<void> {
    await this.to('checkbox', label)
    await this.press('Space')
  }

  /** Moves to a radio group, and from there by arrows. */
  async choose(label: Name): Promise<void> {
    const wanted = this.#find('radio', label)
    await wanted.first().waitFor({ state: 'attached' })
    const group = await wanted.first().getAttribute('name')
    await this.#go(this.#page.locator(`input[type=radio][name="${group}"]`), `the group of ${label}`, 'Tab')
    await this.#arrowTo(wanted, `radio ${label}`)
    if (!(await wanted.first().isChecked())) await this.press('Space')
  }

  /** Moves to a native select, and by arrows to the option. */
  async select(label: Name, option: string): Promise<void> {
    await this.to('combobox', label)
    const chosen = () => this.#page.evaluate<string>('document.activeElement.selectedOptions[0].label.trim()')
    await this.press('Home')
    for (let step = 0; (await chosen()) !== option; step++) {
      assert.ok(step < 60, `${label} offers no “${option}”`)
      await this.press('ArrowDown')
    }
  }

  /** Opens a menu and chooses an item. */
  async take(menu: Name, item: Name, key: 'Tab' | 'Shift+Tab' = 'Tab'): Promise<void> {
    await this.use('button', menu, key)
    await this.#page.getByRole('menu').waitFor()
    await this.#arrowTo(this.#find('menuitem', item), `menu item ${item}`)
    await this.#judgeStop()
    await this.press('Enter')
    await this.#page.getByRole('menu').waitFor({ state: 'detached' })
  }

  /** The file that is saved when the control is pressed. */
  async download(role: Role, name: Name): Promise<{ name: string; text: string }> {
    await this.to(role, name)
    const [file] = await Promise.all([this.#page.waitForEvent('download'), this.press('Enter')])
    return { name: file.suggestedFilename(), text: readFileSync(await file.path(), 'utf8') }
  }

  /** Opens the browser's file dialog at the focused control, and gives it this file. */
  async give(file: { name: string; text: string }): Promise<void> {
    const [chooser] = await Promise.all([this.#page.waitForEvent('filechooser'), this.press('Enter')])
    await chooser.setFiles({ name: file.name, mimeType: 'text/plain', buffer: Buffer.from(file.text) })
  }

  /** Moves to a file control. */
  async toFile(label: Name): Promise<void> {
    await this.#go(this.#page.getByLabel(label), `the file ${label}`, 'Tab')
  }

  /** The last copied text. */
  async clipboard(): Promise<string> {
    return await this.#page.evaluate<string>('navigator.clipboard.readText()')
  }

  async sees(text: Name): Promise<void> {
    await this.#page.getByText(text).filter({ visible: true }).first().waitFor()
  }

  async seesNo(text: Name): Promise<void> {
    await this.#page.getByText(text).filter({ visible: true }).first().waitFor({ state: 'detached' })
  }

  async seesIn(role: Role, name: Name): Promise<string> {
    return await this.#find(role, name).first().innerText()
  }

  /** Waits until such a control exists. */
  async has(role: Role, name: Name): Promise<void> {
    await this.#find(role, name).first().waitFor()
  }

  /** Waits until a dialog has closed. */
  async closed(): Promise<void> {
    await this.#page.getByRole('dialog').waitFor({ state: 'detached' })
  }

  async title(name: Name): Promise<void> {
    await this.#page.getByRole('heading', { level: 1, name, exact: typeof name === 'string' }).waitFor()
  }

  /** Waits until this control has the focus. */
  async stands(role: Role, name: Name): Promise<void> {
    const wanted = this.#find(role, name).and(this.#page.locator(':focus'))
    await wanted.waitFor().catch(async () => {
      assert.fail(`the focus is not at ${role} ${name} but at ${await this.#page.evaluate(lastStops)}`)
    })
  }

  /** Path, search and hash of the page. */
  address(): string {
    const { pathname, search, hash } = new URL(this.#page.url())
    return pathname + search + hash
  }

  /** The value of an expression in the page, for reading only. */
  async look<Value>(expression: string): Promise<Value> {
    return await this.#page.evaluate<Value>(expression)
  }

  /** Clears the cookies, so that the service sees another browser. */
  async forget(): Promise<void> {
    await this.#page.context().clearCookies()
  }

  /** Asserts that no pointer was used, every stop was visible, and the page reported only expected errors. */
  assertClean(expected: RegExp = /^$/): void {
    assert.equal(this.#pointed, 0, 'a mouse was used')
    assert.deepEqual([...this.hiddenStops], [], 'these have the focus and do not show it')
    assert.deepEqual(
      this.complaints.filter((line) => !expected.test(line)),
      [],
    )
  }

  #find(role: Role, name: Name): Locator {
    return this.#page.getByRole(role, { name, exact: typeof name === 'string' })
  }

  async #go(wanted: Locator, what: string, key: 'Tab' | 'Shift+Tab'): Promise<void> {
    await wanted
      .first()
      .waitFor({ state: 'attached' })
      .catch(async () =>
        assert.fail(`${what} is not there, but ${await this.look('document.body.innerText')}`),
      )
    for (let stops = 0; stops < mostStops; stops++) {
      if ((await this.#isFocused(wanted)) && (await this.#staysUntilPressable(wanted))) return
      await this.press(key)
      await this.#judgeStop()
    }
    assert.fail(`${what} is not reached by ${key}; the last stop was ${await this.look(lastStops)}`)
  }

  /** A control that waits for an answer keeps the focus. A closing dialog may still move it. */
  async #staysUntilPressable(wanted: Locator): Promise<boolean> {
    const waiting = this.#page.locator(':focus[aria-disabled=true]')
    await until('it to be pressed', async () => (await waiting.count()) === 0)
    return await this.#isFocused(wanted)
  }

  async #arrowTo(wanted: Locator, what: string): Promise<void> {
    await wanted.first().waitFor()
    for (let stops = 0; stops < 40; stops++) {
      if (await this.#isFocused(wanted)) return
      await this.press('ArrowDown')
      // A menu moves the focus a task later.
      await this.look('new Promise((resolve) => setTimeout(resolve))')
    }
    assert.fail(`${what} is not reached by arrows; the last stop was ${await this.look(lastStops)}`)
  }

  async #isFocused(wanted: Locator): Promise<boolean> {
    return (await wanted.and(this.#page.locator(':focus')).count()) > 0
  }

  async #judgeStop(): Promise<void> {
    const fault = await this.#page.evaluate<string | null>(ringFault)
    if (fault) this.hiddenStops.add(fault)
  }

  /** Waits until no control on the page waits for an answer. */
  async settle(): Promise<void> {
    await this.#page.locator('[role=status][aria-label="Loading…"]').first().waitFor({ state: 'detached' })
  }

  /** The findings of axe on the current page, in both themes. */
  async audit(): Promise<string[]> {
    return await audit(this.#page)
  }

  /** Moves once around the page by Tab. Returns the controls that this does not reach. */
  async walk(): Promise<string[]> {
    await this.#page.evaluate('globalThis.reached = new Set()')
    for (let stops = 0; stops < mostStops; stops++) {
      await this.press('Tab')
      await this.#judgeStop()
      const isRound = await this.#page.evaluate<boolean>(
        '(() => { const at = document.activeElement; const known = at !== document.body && reached.has(at); reached.add(at); return known })()',
      )
      if (isRound) break
    }
    return await this.#page.evaluate<string[]>(unreached)
  }
}

async function agreeToPasskeys(page: Page): Promise<void> {
  const tools = await page.context().newCDPSession(page)
  await tools.send('WebAuthn.enable')
  await tools.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  })
}
