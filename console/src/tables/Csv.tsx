// The button that saves a table as a CSV file, rows as shown.
import { Button } from "@mantine/core";
import { DownloadIcon } from "../parts/icons.tsx";
import { type CsvColumn, csv, fileName } from "./csv.ts";

export function keep(blob: Blob, name: string): void {
  const url = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

interface CsvButtonProps<T> {
  name: string;
  columns: readonly CsvColumn<T>[];
  /** Called when asked: a table of ten thousand rows is not written out at each change. */
  rows: () => readonly T[];
  disabled?: boolean;
  /** The name of the table. */
  of?: string;
}

export function CsvButton<T>({ name, columns, rows, disabled = false, of }: CsvButtonProps<T>) {
  const save = () => keep(new Blob([csv(columns, rows())], { type: "text/csv;charset=utf-8" }), fileName(name, "csv"));
  return (
    <Button
      variant="default"
      leftSection={<DownloadIcon size={14} />}
      disabled={disabled}
      onClick={save}
      aria-label={`Save ${of ?? "this table"} as CSV`}
    >
      CSV
    </Button>
  );
}
