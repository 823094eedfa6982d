// Measures the width of an element.
import { useLayoutEffect, useState } from "react";

/** Whole pixels, so that nothing is drawn again for fractions of one; 0 before it was measured. */
export function useWidth(ref: { current: HTMLElement | null }): number {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const watched = ref.current;
    if (!watched) return;
    const measure = () => setWidth(Math.floor(watched.clientWidth));
    measure(); // before the first picture, so that nothing moves
    const observer = new ResizeObserver(measure);
    observer.observe(watched);
    return () => observer.disconnect();
  }, [ref]);
  return width;
}
