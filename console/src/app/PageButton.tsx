// A button that leads to a page of the menu; nobody sees one to a page that their roles do not open.
import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { me as meQuery } from "../api/queries.ts";
import { mayOpen } from "./pages.ts";

type Target = "/join" | "/clusters/new" | "/jobs/new";

/** False until the roles are known. */
export function useMayOpen(to: Target): boolean {
  const me = useQuery(meQuery).data;
  return me != null && mayOpen(to, me.roles);
}

interface Props {
  to: Target;
  icon?: ReactNode;
  isQuiet?: boolean;
  children: ReactNode;
}

export function PageButton({ to, icon, isQuiet = false, children }: Props): ReactNode {
  if (!useMayOpen(to)) return null;
  return (
    <Button component={Link} to={to} leftSection={icon} variant={isQuiet ? "default" : "filled"}>
      {children}
    </Button>
  );
}
