// Decides whether a key press is a shortcut: outside of fields and dialogs, without modifier keys.

const FIELDS = /^(INPUT|TEXTAREA|SELECT)$/;

export function isTyping(event: KeyboardEvent): boolean {
  const target = event.target as HTMLElement;
  return target.isContentEditable || FIELDS.test(target.tagName);
}

/** A plain letter on the page itself, not in a field and not while a dialog is open. */
export function isShortcut(event: KeyboardEvent): boolean {
  return (
    !event.ctrlKey && !event.metaKey && !event.altKey && !isTyping(event) && !document.querySelector('[role="dialog"]')
  );
}
