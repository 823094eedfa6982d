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

/** The home pages do without these: controls of forms, long lists, QR codes: they load with the pages that have them. */
const LATER = new RegExp(
  "/(react-virtual|virtual-core)/|/react-number-format/|/uqr/|" +
    "/components/(Badge|Checkbox|Collapse|File|NativeSelect|NumberInput|Progress|Radio|SimpleGrid|Slider|Tabs|Textarea)",
);

const master = process.env.WINDROW_URL ?? "http://127.0.0.1:8000";

export default defineConfig({
  plugins: [react(), named],
  html: { cspNonce: "__WINDROW_NONCE__" }, // the Master puts a fresh one there with each page (api/headers.py)
  build: {
    outDir: "dist",
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 800,
    rollupOptions: {
      output: {
        // Libraries change more seldom than our own pages: a browser keeps them across upgrades.
        manualChunks: (id: string) => {
          if (!id.includes("/node_modules/") || LATER.test(id)) return undefined;
          if (id.includes("/@xterm/")) return "terminal";
          return id.includes("uplot") ? "charts" : "libraries";
        },
      },
    },
  },
  server: { host: "127.0.0.1", proxy: { "/api": master, "/healthz": master, "/docs": master } },
  test: { include: ["src/**/*.test.ts"], environment: "node" },
});
