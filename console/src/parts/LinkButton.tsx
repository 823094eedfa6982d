// A button that is a link to a page, with the router's types.
import { Button, type ButtonProps } from "@mantine/core";
import { createLink } from "@tanstack/react-router";
import type { AnchorHTMLAttributes, Ref } from "react";

type Props = ButtonProps &
  Omit<AnchorHTMLAttributes<HTMLAnchorElement>, keyof ButtonProps> & { ref?: Ref<HTMLAnchorElement> };

export const LinkButton = createLink(function Linked(props: Props) {
  return <Button component="a" variant="default" {...props} />;
});
