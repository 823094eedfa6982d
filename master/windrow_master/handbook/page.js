// The colours that the console was set to, and a menu that is closed at first where there is no room beside the page.
const scheme = localStorage.getItem("mantine-color-scheme-value");
if (scheme === "light" || scheme === "dark") document.documentElement.dataset.scheme = scheme;
document.addEventListener("DOMContentLoaded", () => {
  const menu = document.querySelector("details.menu");
  const narrow = matchMedia("(max-width: 860px)");
  const set = () => {
    menu.open = !narrow.matches;
  };
  narrow.addEventListener("change", set);
  set();
  menu.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
});
