import { expect, it } from "vitest";
import { askWith, signedInAgain } from "./again.ts";

it("asks once for several requests, and again for a later one", async () => {
  let count = 0;
  let answer: (done: boolean) => void = () => undefined;
  const stop = askWith(() => {
    count += 1;
    return new Promise((done) => {
      answer = done;
    });
  });
  const both = Promise.all([signedInAgain(), signedInAgain()]);
  answer(true);
  expect(await both).toEqual([true, true]);
  expect(count).toBe(1);
  const later = signedInAgain();
  answer(false);
  expect(await later).toBe(false);
  expect(count).toBe(2);
  stop();
});

it("says no where no page asks", async () => {
  const stop = askWith(() => Promise.resolve(true));
  stop();
  expect(await signedInAgain()).toBe(false);
});
