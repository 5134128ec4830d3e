// Focuses the first faulty field after a form was refused.

/** Call it right before the faults are rendered. */
export function focusFault(form: HTMLFormElement): void {
  requestAnimationFrame(() => form.querySelector<HTMLElement>('[aria-invalid=true]')?.focus())
}
