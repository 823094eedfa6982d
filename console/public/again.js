// Loads the page again where one of its files did not arrive, as when the network changed meanwhile; else it would
// stay empty without a word. A file of its own, for nothing inline runs, and no module, to be there before the others.
(() => {
  const loads = "windrow.loads";
  const most = 3;
  let hasStarted = false;
  let waits = 0;

  const again = () => {
    const root = document.getElementById("root");
    if (waits || hasStarted) return;
    const count = Number(window.sessionStorage.getItem(loads)) + 1;
    if (count > most) {
      window.sessionStorage.removeItem(loads);
      if (root) root.textContent = "The console did not load. Check the connection to the Master, then load it again.";
      return;
    }
    window.sessionStorage.setItem(loads, String(count));
    waits = window.setTimeout(reload, count * 1000);
  };

  // Only once the Master answers: a page that failed on its way would leave the browser's own error page.
  const reload = () => {
    window.fetch(window.location.pathname, { method: "HEAD", cache: "no-store" }).then(
      () => hasStarted || window.location.reload(),
      () => {
        waits = window.setTimeout(reload, 1000);
      },
    );
  };

  // From then on the console itself says what it lacks, and its address has no token any more.
  const started = () => {
    hasStarted = true;
    window.clearTimeout(waits);
    window.sessionStorage.removeItem(loads);
  };

  const lost = (event) => {
    const file = event.target;
    if (file instanceof HTMLScriptElement || (file instanceof HTMLLinkElement && file.rel !== "icon")) again();
  };
  window.addEventListener("windrow:started", started);
  window.addEventListener("error", lost, true);
  window.addEventListener("unhandledrejection", again);
})();
