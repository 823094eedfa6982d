// How far a row that is longer than the window is scrolled. Pure.

interface Row {
  scrollLeft: number;
  clientWidth: number;
}

interface Member {
  offsetLeft: number;
  offsetWidth: number;
}

/** Left of a row, in pixels, so that all of one member is in sight; where it is already, nothing moves. */
export function scrolledTo({ scrollLeft, clientWidth }: Row, { offsetLeft, offsetWidth }: Member): number {
  const least = offsetLeft + offsetWidth - clientWidth;
  return Math.min(Math.max(scrollLeft, least), offsetLeft);
}
