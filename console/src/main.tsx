// Starts the console.
import "@mantine/core/styles.css";
import "@mantine/notifications/styles.css";
import "uplot/dist/uPlot.min.css";
import "./app.css";
import { createRoot } from "react-dom/client";
import { StrictMode } from "react";
import { App } from "./App.tsx";

// Fetched beside the question who is signed in, not after its answer; the router then finds it there.
if (window.location.pathname === "/fleet") void import("./pages/FleetPage.tsx");

const root = document.getElementById("root");
if (root) {
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
}
