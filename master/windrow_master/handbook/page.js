// The colours that the console was set to, and a menu that is closed at first where there is no room beside the page.
const chosen = localStorage.getItem("mantine-color-scheme-value");
const dark = matchMedia("(prefers-color-scheme: dark)");
const colour = () => {
  const own = chosen === "light" || chosen === "dark" ? chosen : null;
  document.documentElement.dataset.mantineColorScheme = own ?? (dark.matches ? "dark" : "light");
};
dark.addEventListener("change", colour);
colour();
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
