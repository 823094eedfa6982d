// The entry script: sends the first requests, then loads the rest of the console.
import { askAhead } from "./early.ts";
import { mendLanguage } from "./locale.ts";

mendLanguage(window.navigator);
askAhead(window.location.pathname, window.location.hash);
void import("./main.tsx");
// Read beside the libraries, not after them; the router then finds the page there.
if (window.location.pathname === "/fleet") void import("../fleet/FleetPage.tsx");
if (window.location.pathname === "/") void import("../home/HomePage.tsx");
