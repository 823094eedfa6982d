// The ways to the pages: the menu of a product with the switch to the others, the bar of a phone, the New button.
import { Button, Menu } from "@mantine/core";
import { Link, useNavigate } from "@tanstack/react-router";
import type { Role } from "../api/types.ts";
import { MoreIcon, PlusIcon } from "../parts/icons.tsx";
import { GROUPS, menuFor, NEW, type Product, phoneBar, productsOf } from "./pages.ts";
import { chooseProduct } from "./product.ts";

interface Props {
  roles: readonly Role[];
  product: Product;
}

export function Navigation({ roles, product }: Props) {
  const pages = menuFor(roles, product);
  return (
    <nav className="wr-nav" aria-label="Screens">
      <Switch roles={roles} product={product} />
      {GROUPS.map((group, index) => [group, index, pages.filter((page) => page.menu.group === group)] as const)
        .filter(([, , of]) => of.length > 0)
        .map(([group, index, of]) => (
          <div key={group}>
            {index > 0 && <div className="wr-nav-title">{group}</div>}
            {of.map(({ path, name, menu, exact }) => (
              <Link key={path} to={path} activeOptions={{ exact, includeSearch: false }}>
                <menu.icon />
                {name}
              </Link>
            ))}
          </div>
        ))}
    </nav>
  );
}

/** Only for who has several. */
function Switch({ roles, product }: Props) {
  const navigate = useNavigate();
  const mine = productsOf(roles);
  if (mine.length < 2) return null;
  const choose = (one: Product) => {
    chooseProduct(one);
    void navigate({ to: "/" });
  };
  return (
    <div className="wr-switch" role="group" aria-label="Product">
      {mine.map(([one, name]) => (
        <button key={one} type="button" aria-pressed={one === product} onClick={() => choose(one)}>
          {name}
        </button>
      ))}
    </div>
  );
}

export function PhoneBar({ roles, product, isOpened, more }: Props & { isOpened: boolean; more: () => void }) {
  return (
    <nav className="wr-bar" aria-label="Main pages">
      {phoneBar(roles, product).map(({ path, name, menu, exact }) => (
        <Link key={path} to={path} activeOptions={{ exact, includeSearch: false }}>
          <menu.icon size={20} />
          <span className="wr-cut">{name.split(" ")[0]}</span>
        </Link>
      ))}
      <button type="button" onClick={more} aria-expanded={isOpened}>
        <MoreIcon size={20} />
        More
      </button>
    </nav>
  );
}

export function New({ roles }: { roles: readonly Role[] }) {
  const mine = NEW.filter(([, , of]) => of.some((role) => roles.includes(role)));
  if (mine.length === 0) return null;
  return (
    <Menu position="bottom-end" width={190}>
      <Menu.Target>
        <Button leftSection={<PlusIcon size={14} />} className="wr-new" aria-label="New">
          New
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {mine.map(([name, path, , search = {}]) => (
          <Menu.Item
            key={name}
            component={Link}
            to={path}
            search={search as never} // the menu's types know no address
          >
            {name}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}
