import { expect, test } from "vitest";
import { mendLanguage, usable } from "./locale.ts";

test.each([
  ["en-US@posix", "en-US"],
  ["de_DE.UTF-8", "de-DE"],
  ["de-DE", "de-DE"],
  ["C", "en-US"],
  ["", "en-US"],
  [undefined, "en-US"],
])("%s is read as %s", (said, language) => {
  expect(usable(said)).toBe(language);
});

test("a browser that names no language is given one, and any other is left alone", () => {
  const odd = { language: "en-US@posix" } as Navigator;
  mendLanguage(odd);
  expect(new Intl.NumberFormat(odd.language).format(1.5)).toBe("1.5");

  const frozen = Object.freeze({ language: "de-DE" }) as Navigator;
  expect(() => mendLanguage(frozen)).not.toThrow();
});
