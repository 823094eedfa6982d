// Starts the console.
import "@mantine/core/styles.css";
import "@mantine/notifications/styles.css";
import "./app.css";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./App.tsx";

window.dispatchEvent(new Event("windrow:started")); // to public/again.js

const root = document.getElementById("root");
if (root) {
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
}
