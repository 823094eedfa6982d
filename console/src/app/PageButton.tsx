// A button that leads to a page of the menu; nobody sees one to a page that their roles do not open.
import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { me as meQuery } from "../api/queries.ts";
import { type MenuPage, mayOpen } from "./pages.ts";

/** False until the roles are known. */
export function useMayOpen(to: MenuPage["path"]): boolean {
  const me = useQuery(meQuery).data;
  return me != null && mayOpen(to, me.roles);
}

interface Props {
  to: MenuPage["path"];
  search?: Record<string, string>;
  icon?: ReactNode;
  isQuiet?: boolean;
  children: ReactNode;
}

export function PageButton({ to, search = {}, icon, isQuiet = false, children }: Props): ReactNode {
  if (!useMayOpen(to)) return null;
  return (
    <Button
      component={Link}
      to={to}
      search={search as never} // its types know no address
      leftSection={icon}
      variant={isQuiet ? "default" : "filled"}
    >
      {children}
    </Button>
  );
}
