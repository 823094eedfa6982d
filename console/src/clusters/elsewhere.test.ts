import { expect, test } from "vitest";
import type { AttemptPlace, Try } from "../api/types.ts";
import { DASH } from "../parts/format.ts";
import { boughtText, placeWord, tryPrice, trySays } from "./elsewhere.ts";

const TRY = {
  machine: "m5.large",
  spot: true,
  service: false,
  price_per_hour: "0.0410",
  currency: "USD",
  state: "booting",
  said: null,
} as Try;

test("a try says what is bought, for how much, and why it failed", () => {
  expect(boughtText(TRY)).toBe("spot m5.large");
  expect(boughtText({ ...TRY, spot: false, service: true })).toBe("m5.large, a run at a service");
  expect(tryPrice(TRY)).toBe("0.041 USD");
  expect(trySays(TRY)).toBe("It starts and has not joined yet.");
  expect(trySays({ state: "failed", said: "no capacity" })).toBe("no capacity");
  expect(trySays({ state: "used", said: null })).toBe(DASH);
});

test("a job in a list says where it runs, unless that is this market", () => {
  const place = { backend: "aws", region: "eu-central-1", zone: "eu-central-1b", spot: true } as AttemptPlace;
  expect(placeWord(place)).toBe("aws eu-central-1b, spot");
  expect(placeWord({ ...place, zone: null, spot: false })).toBe("aws eu-central-1");
  expect(placeWord(null)).toBeNull();
  expect(placeWord(undefined)).toBeNull();
});
