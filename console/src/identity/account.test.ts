import { expect, it } from "vitest";
import type { Profile } from "../api/types.ts";
import {
  browserName,
  codesFile,
  codeText,
  inFours,
  installLine,
  isCode,
  needsPassword,
  passwordFault,
  proofWays,
  toNewUser,
  toProfileChange,
} from "./account.ts";

const ADA: Profile = {
  id: "user_1",
  name: "Ada",
  address: "ada@example.org",
  has_password: true,
  has_second_factor: false,
  recovery_codes_left: null,
  organisations: [],
};

it("takes a new user with a name, an address and 12 characters of password", () => {
  const draft = { name: " Ada ", address: "ada@example.org ", password: "violet kettle" };
  expect(toNewUser("wi_1", draft, null)).toEqual({
    body: { secret: "wi_1", name: "Ada", address: "ada@example.org", password: "violet kettle" },
    faults: {},
  });
  expect(Object.keys(toNewUser("wi_1", { name: "", address: "ada", password: "short" }, null).faults)).toEqual([
    "name",
    "address",
    "password",
  ]);
});

it("keeps to the address of the invitation", () => {
  const draft = { name: "Ada", address: "other@example.org", password: "violet kettle" };
  expect(toNewUser("wi_1", draft, "ada@example.org").body.address).toBe("ada@example.org");
});

it("counts characters as people do", () => {
  expect(passwordFault("🔑".repeat(12))).toBeUndefined();
  expect(passwordFault("🔑".repeat(11))).toContain("12");
});

it("sends what changed alone, and the password with another address", () => {
  const same = { name: "Ada", address: "ada@example.org", password: "" };
  expect(toProfileChange(same, ADA)).toBeNull();
  expect(toProfileChange({ ...same, name: "Ada L" }, ADA)).toEqual({ name: "Ada L" });
  const moved = { ...same, address: "ada@example.net" };
  expect(needsPassword(moved, ADA)).toBe(true);
  expect(toProfileChange(moved, ADA)).toBeNull();
  expect(toProfileChange({ ...moved, password: "p" }, ADA)).toEqual({ address: "ada@example.net", password: "p" });
  expect(toProfileChange(moved, { ...ADA, has_password: false })).toEqual({ address: "ada@example.net" });
  expect(toProfileChange({ ...same, address: "" }, { ...ADA, has_password: false })).toBeNull();
});

it("writes secrets and recovery codes for people", () => {
  expect(inFours("ABCDEFGHIJ")).toBe("ABCD EFGH IJ");
  expect(codesFile(["AAAA-BBBB", "CCCC-DDDD"])).toContain("\nAAAA-BBBB\nCCCC-DDDD\n");
});

it("puts an invitation into the environment of the line that installs windrow", () => {
  const command = "curl -fsSL -k --pinnedpubkey sha256//a+/b= https://market.example:8443/install-cli.sh | sh";
  expect(installLine(command, "https://market.example:8443")).toBe(command);
  expect(installLine(command, "https://market.example:8443", "wi_$&x.00")).toBe(
    "curl -fsSL -k --pinnedpubkey sha256//a+/b= https://market.example:8443/install-cli.sh | " +
      "WINDROW_LINK='https://market.example:8443/#invitation=wi_$&x.00' sh",
  );
});

it("signs in again by what the user has, a token at last", () => {
  expect(proofWays(null)).toEqual(["token"]);
  expect(proofWays(ADA)).toEqual(["password", "token"]);
  expect(proofWays({ ...ADA, has_second_factor: true })).toEqual(["password", "code", "token"]);
});

it("reads a device's code however it is typed", () => {
  expect(["bcdf", "bcdfg", " bcdf ghjk", "BCDF-GHJKLM", "<b>bcdf</b>"].map(codeText)).toEqual([
    "BCDF",
    "BCDF-G",
    "BCDF-GHJK",
    "BCDF-GHJK",
    "BBCD-FB",
  ]);
  expect([isCode("BCDF-GHJK"), isCode("BCDF-GHJ"), isCode("")]).toEqual([true, false, false]);
});

it("names a browser by its product, version and system, and leaves what is none", () => {
  const chrome =
    "Mozilla/5.0 (X11 Linux x86_64) AppleWebKit/537.36 (KHTML like Gecko) HeadlessChrome/153.0 Safari/537.36";
  expect(browserName(chrome)).toBe("Chrome 153 on Linux");
  expect(browserName(`${chrome.replace("Headless", "")} Edg/153.0`)).toBe("Edge 153 on Linux");
  expect(browserName("Mozilla/5.0 (Windows NT 10.0; rv:140.0) Gecko/20100101 Firefox/140.0")).toBe(
    "Firefox 140 on Windows",
  );
  const phone =
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1 Version/18.0 Mobile/15E148 Safari/604.1";
  expect(browserName(phone)).toBe("Safari 18 on iOS");
  expect([browserName("curl/8.5.0"), browserName("A browser")]).toEqual(["curl/8.5.0", "A browser"]);
});
