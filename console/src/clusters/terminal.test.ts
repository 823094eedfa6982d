import { expect, test } from "vitest";
import { editorLines, endedText, forwardedPorts, PIECE_BYTES, pieces, readSaid, socketUrl } from "./terminal.ts";

test("the socket has the page's origin, with TLS where the page has it", () => {
  expect(socketUrl("https://market.example:8443/clusters/a?b#c", "cluster_a")).toBe(
    "wss://market.example:8443/api/v1/clusters/cluster_a/terminal",
  );
  expect(socketUrl("http://127.0.0.1:8000/", "a/b")).toBe("ws://127.0.0.1:8000/api/v1/clusters/a%2Fb/terminal");
});

test("a paste goes in pieces, and whole", () => {
  const found = pieces(new Uint8Array(PIECE_BYTES * 2 + 1).fill(7));
  expect(found.map((one) => one.length)).toEqual([PIECE_BYTES, PIECE_BYTES, 1]);
  expect(pieces(new Uint8Array())).toEqual([]);
});

test("the end is told in a sentence", () => {
  expect(endedText(readSaid('{"ended": "The shell has ended.", "exit_code": 3}'))).toBe(
    "The shell has ended. Exit code 3.",
  );
  expect(endedText(readSaid('{"ended": "The shell has ended.", "exit_code": 0}'))).toBe("The shell has ended.");
  expect(endedText(readSaid('{"open": true}'))).toBe("The connection was lost.");
  expect(endedText(readSaid("nonsense"))).toBe("The connection was lost.");
  expect(endedText(readSaid("3"))).toBe("The connection was lost.");
  expect(endedText(null)).toBe("The connection was lost.");
});

test("VS Code is led to a machine by its name, or by its id where the name is no host's", () => {
  expect(editorLines({ id: "cluster_a", name: "lab" })).toBe(
    "windrow cluster ssh --config lab >> ~/.ssh/config\ncode --remote ssh-remote+lab",
  );
  expect(editorLines({ id: "cluster_a", name: "-x; rm" })).toContain("cluster ssh --config cluster_a");
});

test("a port with an address of its own is not forwarded", () => {
  expect(forwardedPorts({ request: { ports: [80, 90] }, urls: { "80": "https://p80" } })).toEqual([90]);
});
