// Starts the console.
import "@mantine/core/styles.css";
import "@mantine/notifications/styles.css";
import "./app.css";
import { createRoot } from "react-dom/client";
import { StrictMode } from "react";
import { App } from "./App.tsx";

const root = document.getElementById("root");
if (root) {
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
}
