// How wide an element is now.
import { useEffect, useState } from "react";

/** Whole pixels, so that nothing is drawn again for fractions of one; 0 before it was measured. */
export function useWidth(ref: { current: HTMLElement | null }): number {
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const watched = ref.current;
    if (!watched) return;
    const observer = new ResizeObserver(() => setWidth(Math.floor(watched.clientWidth)));
    observer.observe(watched);
    return () => observer.disconnect();
  }, [ref]);
  return width;
}
