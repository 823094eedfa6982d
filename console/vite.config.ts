// The build: one page, hashed assets, nothing inline, as the Master's strict CSP wants it.
import react from "@vitejs/plugin-react";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

/** The page names what its small first script will import, so that the browser fetches all of it at once. */
const named: Plugin = {
  name: "windrow-named",
  transformIndexHtml: {
    order: "post",
    handler: (_, { bundle }) => {
      const files = Object.values(bundle ?? {});
      const first = files.flatMap((file) =>
        file.type === "chunk" && (file.name === "libraries" || file.name === "main") ? [file.fileName] : [],
      );
      return first.map((file) => ({
        tag: "link",
        attrs: { rel: "modulepreload", crossorigin: true, href: `/${file}` },
        injectTo: "head" as const,
      }));
    },
  },
};

/** The home pages do without these: controls of forms, and long lists. */
const LATER = new RegExp(
  "/(react-virtual|virtual-core)/|/react-number-format/|" +
    "/components/(Autocomplete|Badge|Checkbox|Collapse|Combobox|File|NativeSelect|NumberInput|Progress|Radio|" +
    "SimpleGrid|Slider|Tabs|Textarea)",
);

/** But for QR codes, which are for one dialog, and what is later. */
const isFirst = (id: string) => id.includes("/node_modules/") && !id.includes("/uqr/") && !LATER.test(id);

const master = process.env.WINDROW_URL ?? "http://127.0.0.1:8000";

export default defineConfig({
  plugins: [react(), named],
  html: { cspNonce: "__WINDROW_NONCE__" }, // the Master puts a fresh one there with each page (api/headers.py)
  build: {
    outDir: "dist",
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 800,
    rolldownOptions: {
      output: {
        // Libraries change more seldom than our own pages: a browser keeps them across upgrades.
        codeSplitting: {
          groups: [
            { name: "terminal", test: "/@xterm/", priority: 2 },
            { name: "charts", test: "/uplot/", priority: 2 },
            { name: "libraries", test: isFirst, priority: 1 },
            { name: "controls", test: LATER },
          ],
        },
      },
    },
  },
  server: { host: "127.0.0.1", proxy: { "/api": master, "/healthz": master, "/docs": master } },
  test: { include: ["src/**/*.test.ts"], environment: "node" },
});
