// The focus of the keyboard around a dialog.
import { useLayoutEffect } from "react";

/** For a dialog that is there only while it is open: when it closes, the focus is where it was before. */
export function useFocusBack(): void {
  useLayoutEffect(() => {
    const before = document.activeElement;
    return () => {
      if (before instanceof HTMLElement && before !== document.body) before.focus({ preventScroll: true });
    };
  }, []);
}
