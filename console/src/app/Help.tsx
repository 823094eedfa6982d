// The dialog of all keyboard shortcuts.
import type { Role } from "../api/types.ts";
import { Dialog } from "../parts/Dialog.tsx";
import { menuFor } from "./pages.ts";

const EVERYWHERE: readonly (readonly [readonly string[], string])[] = [
  [["Ctrl K", "⌘ K"], "Go to a page, host or machine, or do something"],
  [["?"], "This help"],
  [["/"], "Go to the filter of the list"],
  [["Esc"], "Close what is open; empty the filter"],
  [["↑", "↓"], "From row to row in the fleet's table"],
  [["Enter"], "Open the row"],
  [["Ctrl J", "⌘ J"], "Next colours: as the system, light, dark"],
];

export function Help({ roles, close }: { roles: readonly Role[]; close: () => void }) {
  return (
    <Dialog onClose={close} title="Keys" size={640}>
      <div className="wr-help">
        <section aria-label="Everywhere">
          <h3>Everywhere</h3>
          <dl>
            {EVERYWHERE.map(([keys, says]) => (
              <div key={says}>
                <dt>
                  {keys.map((key, index) => (
                    <span key={key}>
                      {index > 0 && " or "}
                      <kbd>{key}</kbd>
                    </span>
                  ))}
                </dt>
                <dd>{says}</dd>
              </div>
            ))}
          </dl>
        </section>
        <section aria-label="Going to a page">
          <h3>
            <kbd>g</kbd>, then
          </h3>
          <dl>
            {menuFor(roles).map(({ path, name, menu }) => (
              <div key={path}>
                <dt>
                  <kbd>{menu.key}</kbd>
                </dt>
                <dd>{name}</dd>
              </div>
            ))}
          </dl>
        </section>
      </div>
      <p>
        More in the{" "}
        <a className="wr-link" href="/docs">
          documentation
        </a>
        .
      </p>
    </Dialog>
  );
}
