// How many forms of this tab are filled in: what would be lost if their page went.
import { useEffect } from "react";

let filled = 0;

export const isFilled = (): boolean => filled > 0;

/** Counts a form while something in it was changed. */
export function useFilled(when: boolean): void {
  useEffect(() => {
    if (!when) return;
    filled += 1;
    return () => {
      filled -= 1;
    };
  }, [when]);
}
