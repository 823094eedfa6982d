// The layout of the pages outside the frame: signing in, an invitation, a new password.
import { Stack } from "@mantine/core";
import type { ReactNode } from "react";

export function Outside({ children }: { children: ReactNode }) {
  return (
    <main style={{ maxWidth: 420, margin: "0 auto", padding: "12vh 20px 40px" }}>
      <Stack gap="lg">
        <div className="wr-brand" style={{ fontSize: 18 }}>
          <img src="/windrow.svg" width={32} height={32} alt="" />
          Windrow
        </div>
        {children}
      </Stack>
    </main>
  );
}
