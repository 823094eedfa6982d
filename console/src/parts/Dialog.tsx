// A dialog that is there only while it is open: when it closes, the focus is where it was before.
import { Modal, type ModalProps } from "@mantine/core";
import { useLayoutEffect } from "react";

export function Dialog(props: Omit<ModalProps, "opened">) {
  useLayoutEffect(() => {
    const before = document.activeElement;
    return () => {
      if (before instanceof HTMLElement && before !== document.body) before.focus({ preventScroll: true });
    };
  }, []);
  return <Modal opened {...props} />;
}
