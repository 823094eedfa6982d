// Where the console starts: asks for what the first screen shows, then reads the rest of itself.
import { askAhead } from "./early.ts";
import { mendLanguage } from "./locale.ts";

mendLanguage(window.navigator);
askAhead(window.location.pathname, window.location.hash);
void import("./main.tsx");
// Read beside the libraries, not after them; the router then finds the page there.
if (window.location.pathname === "/fleet") void import("./pages/FleetPage.tsx");
if (window.location.pathname === "/") void import("./pages/OverviewPage.tsx");
