// After a form was refused, the focus is where something must be mended.

/** Call it when the faults are about to be shown. */
export function focusFault(form: HTMLFormElement): void {
  requestAnimationFrame(() => form.querySelector<HTMLElement>('[aria-invalid=true]')?.focus())
}
