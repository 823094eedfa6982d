import { expect, test } from "vitest";
import { scrolledTo } from "./scrolled.ts";

const PHONE = { scrollLeft: 0, clientWidth: 350 };

test("a row scrolls as far as the member that is to be seen, and no further", () => {
  expect(scrolledTo(PHONE, { offsetLeft: 600, offsetWidth: 90 })).toBe(340);
  expect(scrolledTo(PHONE, { offsetLeft: 100, offsetWidth: 90 })).toBe(0);
  expect(scrolledTo({ ...PHONE, scrollLeft: 340 }, { offsetLeft: 100, offsetWidth: 90 })).toBe(100);
  expect(scrolledTo({ ...PHONE, scrollLeft: 340 }, { offsetLeft: 400, offsetWidth: 90 })).toBe(340);
});

test("of a member that is wider than the row its beginning is seen", () => {
  expect(scrolledTo(PHONE, { offsetLeft: 100, offsetWidth: 500 })).toBe(100);
});
