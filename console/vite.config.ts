// How the console is built: one page, hashed assets, nothing inline, so that the Master's strict CSP holds.
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

const master = process.env["WINDROW_URL"] ?? "http://127.0.0.1:8000";

export default defineConfig({
  plugins: [react()],
  html: { cspNonce: "__WINDROW_NONCE__" }, // the Master puts a fresh one there with each page (api/headers.py)
  build: {
    outDir: "dist",
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 800,
    rollupOptions: {
      output: {
        // Libraries change more seldom than our own pages: a browser keeps them across upgrades.
        manualChunks: (id: string) => (id.includes("/node_modules/") ? (id.includes("uplot") ? "charts" : "libraries") : undefined),
      },
    },
  },
  server: { host: "127.0.0.1", proxy: { "/api": master, "/healthz": master } },
  test: { include: ["src/**/*.test.ts"], environment: "node" },
});
