import { describe, expect, test } from "vitest";
import type { CloudBackend, CloudKind, CloudOffer, CloudPurchase } from "../api/types.ts";
import {
  againstForecast,
  backendCommand,
  buyerCommand,
  capRatio,
  capsCommand,
  currencyOf,
  draftOfCaps,
  healthOf,
  machineOf,
  NO_BUYER,
  NO_CAPS,
  ofCap,
  offerText,
  owedNow,
  purchaseCommand,
  purchaseReason,
  renewCommand,
  toBackend,
  toBuyer,
  toCaps,
  toPurchase,
  toSecrets,
  withoutSecrets,
} from "./clouds.ts";

const field = (name: string, required = false, value: string | null = null) => ({
  name,
  text: name,
  required,
  default: value,
});
const EC2 = {
  kind: "ec2",
  currency: "USD",
  settings: [field("region", true), field("image")],
  secrets: [field("aws_access_key_id"), field("aws_secret_access_key")],
} as unknown as CloudKind;
const SSH = {
  kind: "ssh",
  currency: "",
  settings: [field("currency", false, "EUR")],
  secrets: [],
} as unknown as CloudKind;
const DRAFT = {
  ...NO_CAPS,
  name: "aws",
  kind: "ec2",
  settings: { region: "eu-central-1" },
  secrets: {},
  per_day: "40",
};
const OFFER = {
  offer: "g5.xlarge/eu-central-1a/spot",
  kind: "spot",
  gpu: "a10g",
  gpu_count: 1,
  cpus: 4,
  memory_bytes: 16 * 2 ** 30,
  region: "eu-central-1",
  zone: "eu-central-1a",
  price_per_hour: "0.4212",
  currency: "USD",
} as CloudOffer;

describe("a backend from a form", () => {
  test("has what was filled in, and neither the shown call nor the command has a secret", () => {
    const secrets = { aws_access_key_id: "AKIA", aws_secret_access_key: "top-secret", unknown: "x" };
    const { body, faults } = toBackend({ ...DRAFT, secrets, machines: "2", margin: "10" }, EC2);
    expect(faults).toEqual({});
    expect(body.settings).toEqual({ region: "eu-central-1" });
    expect(body.secrets).toEqual({ aws_access_key_id: "AKIA", aws_secret_access_key: "top-secret" });
    expect(body.caps).toMatchObject({ per_day: "40", per_hour: null, machines: 2 });
    expect(JSON.stringify(withoutSecrets(body))).not.toContain("top-secret");
    expect(backendCommand(body)).toBe(
      "windrow backend add aws --kind ec2 --set region=eu-central-1 --credentials FILE --per-day 40 --machines 2 " +
        "--margin 10",
    );
  });

  test("without credentials leaves the Master to find its own", () => {
    expect(backendCommand(toBackend(DRAFT, EC2).body)).not.toContain("--credentials");
  });

  test("names the currency of its kind, or of its setting where the kind has none", () => {
    expect(currencyOf(DRAFT, EC2)).toBe("USD");
    expect(currencyOf({ settings: {} }, SSH)).toBe("EUR");
    expect(currencyOf({ settings: { currency: "CHF" } }, SSH)).toBe("CHF");
  });

  test.each([
    [{ name: "Two Words" }, "name"],
    [{ settings: {} }, "settings.region"],
    [{ per_day: "" }, "per_day"],
    [{ per_hour: "much" }, "per_hour"],
    [{ vcpus: "1.5" }, "vcpus"],
    [{ margin: "-3" }, "margin"],
  ])("%o has a fault", (change, fault) => {
    expect(Object.keys(toBackend({ ...DRAFT, ...change }, EC2).faults)).toEqual([fault]);
  });
});

describe("a project that may buy", () => {
  test("is allowed for so much a day or in all, and the command says the same", () => {
    const { body, faults } = toBuyer({ account: "account_2", per_day: " 50 ", in_all: "" });
    expect(faults).toEqual({});
    expect(body).toEqual({ per_day: "50", in_all: null });
    expect(buyerCommand("aws", "account_2", body)).toBe("windrow backend allow aws account_2 --per-day 50");
  });

  test.each([
    [{}, "per_day"],
    [{ in_all: "much" }, "in_all"],
  ])("has a fault in %o", (change, fault) => {
    expect(Object.keys(toBuyer({ ...NO_BUYER, ...change }).faults)).toEqual([fault]);
  });
});

test("caps that are left empty are said to be none, since they replace those of before", () => {
  const caps = { currency: "USD", per_hour: "5.00", per_day: "40.00", in_all: null, machines: 2, vcpus: null };
  const read = toCaps({ ...draftOfCaps({ caps, margin_percent: 10 }), per_hour: "" });
  expect(read.faults).toEqual({});
  expect(capsCommand("aws", read.caps, read.margin)).toBe(
    "windrow backend cap aws --per-hour none --per-day 40.00 --in-all none --machines 2 --vcpus none --margin 10",
  );
});

describe("what a backend shows", () => {
  const finding = (what: string, good: boolean) => ({
    what,
    good,
    said: `${what} said.`,
    way_out: good ? null : "Mend.",
  });

  test("its health is that of its last check", () => {
    expect(healthOf({ checked_at: null, findings: [] }).state).toBe("not checked");
    expect(healthOf({ checked_at: "x", findings: [finding("quota", true)] }).state).toBe("good");
    const wrong = healthOf({ checked_at: "x", findings: [finding("clock", true), finding("quota", false)] });
    expect(wrong).toEqual({ state: "wrong: quota", tone: "bad", reason: "quota said. Mend." });
  });

  test("of a cap, the part that is used; a cap of 0 is used up", () => {
    expect(capRatio("10", "40")).toBe(0.25);
    expect(capRatio(0, 0)).toBe(1);
    expect(capRatio("10", null)).toBeNull();
    expect(ofCap("36.4812", "40", "USD")).toBe("36.48 of 40.00 USD");
    expect(ofCap("0", null, "EUR")).toBe("0.00 EUR");
  });

  test("what is owed is summed by currency, and what nothing is owed in is left out", () => {
    const of = (currency: string, per_hour: string, living: number) =>
      ({ caps: { currency }, owed: { per_hour, today: "1", in_all: living ? "2" : "0", living } }) as CloudBackend;
    expect(owedNow([of("USD", "1.5", 1), of("EUR", "0", 0), of("USD", "0.5", 2)])).toEqual([
      ["USD", { perHour: 2, today: 2, inAll: 4, living: 3 }],
    ]);
    expect(owedNow([of("EUR", "0", 0)]).map(([currency]) => currency)).toEqual(["EUR"]);
  });
});

describe("a purchase", () => {
  const draft = { backend: "aws", offer: OFFER.offer, account: "", hours: "8" };

  test("is asked for as the form says, and the command the same", () => {
    const { body, faults, most } = toPurchase({ ...draft, account: "account_2" }, OFFER);
    expect(faults).toEqual({});
    expect(most).toBe("3.37 USD");
    expect(body).toEqual({ backend: "aws", offer: OFFER.offer, account: "account_2", hours: 8 });
    expect(purchaseCommand(body)).toBe(
      "windrow purchase new aws g5.xlarge/eu-central-1a/spot --hours 8h --project account_2 --yes",
    );
  });

  test.each(["", "0", "-1", "745", "soon"])("for %o hours has a fault", (hours) => {
    expect(Object.keys(toPurchase({ ...draft, hours }, OFFER).faults)).toEqual(["hours"]);
  });

  test("without an offer has a fault", () => {
    expect(toPurchase(draft, undefined).faults).toEqual({ offer: "Choose an offer" });
  });

  test("says what it is and why it is so, and a name of others cannot do harm", () => {
    expect(machineOf(OFFER)).toBe("1 × a10g");
    expect(machineOf({ ...OFFER, gpu: null, gpu_count: 0 })).toBe("4 vCPUs");
    expect(offerText(OFFER)).toBe("0.4212 USD/h · 1 × a10g · spot · eu-central-1a");
    expect(purchaseReason({ state: "idle", reason: "no \u202ework" })).toBe(
      "It has no work. It is ended soon, or at the end of what is paid for. no �work",
    );
    expect(purchaseReason({ state: "serving", reason: null })).toBeNull();
  });

  test("is compared with its forecast once both are known, the oldest first", () => {
    const gone = (id: string, spent: string, forecast: string | null, paid: string | null = "1") =>
      ({ id, state: "gone", spent, forecast, paid }) as CloudPurchase;
    const rows = [gone("d", "1", null), gone("c", "9", "1", null), gone("b", "1.1", "1"), gone("a", "0.5", "1")];
    const { points, mean, near } = againstForecast(rows);
    expect(points).toEqual([
      { id: "a", ratio: 0.5 },
      { id: "b", ratio: 1.1 },
    ]);
    expect([mean, near]).toEqual([0.8, 1]);
    expect(againstForecast([]).points).toEqual([]);
  });
});

describe("other credentials", () => {
  test("leave empty fields out, and the command reads them from a file", () => {
    expect(toSecrets({ aws_access_key_id: " AKIA ", other: "x" }, EC2)).toEqual({
      body: { secrets: { aws_access_key_id: "AKIA" } },
      ready: true,
    });
    expect(toSecrets({}, EC2).ready).toBe(false);
    expect(toSecrets({ aws_access_key_id: "AKIA" }, undefined).ready).toBe(false);
    expect(renewCommand("aws", { aws_access_key_id: "AKIA" })).toBe("windrow backend renew aws --credentials FILE");
    expect(withoutSecrets({ secrets: { key: "AKIA" } })).toEqual({ secrets: { key: "..." } });
  });
});
