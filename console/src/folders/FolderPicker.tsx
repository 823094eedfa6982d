// Where a folder, a notebook or a script is dropped or chosen; what of it is sent, and what is not.
import { Button, Group, Progress, Stack, Text } from "@mantine/core";
import { useWindowEvent } from "@mantine/hooks";
import { type ChangeEvent, type DragEvent, type InputHTMLAttributes, useRef, useState } from "react";
import { bytes, count, plain } from "../parts/format.ts";
import { ofDrop, ofInput, type Parcel, survey } from "./reading.ts";
import { leftLines } from "./sifting.ts";

interface Props {
  parcel: Parcel | null;
  change: (parcel: Parcel | null) => void;
  /** What becomes of it. */
  about?: string;
  label?: string;
}

type Found = ReturnType<typeof ofInput>;

export function FolderPicker({ parcel, change, about = "It is sent with the job.", label = "Files" }: Props) {
  const [isOver, setOver] = useState(false);
  const [state, setState] = useState<{ reads: boolean; fault: string | null }>({ reads: false, fault: null });
  const take = async (found: Promise<Found>) => {
    setState({ reads: true, fault: null });
    try {
      change(await survey(await found));
      setState({ reads: false, fault: null });
    } catch (failure) {
      setState({ reads: false, fault: failure instanceof Error ? failure.message : String(failure) });
    }
  };
  // Beside its place, a browser would leave the page and show what was dropped.
  const elsewhere = (event: globalThis.DragEvent) => {
    if (event.dataTransfer?.types.includes("Files")) event.preventDefault();
  };
  useWindowEvent("dragover", elsewhere);
  useWindowEvent("drop", elsewhere);
  const over = (event: DragEvent, is: boolean) => {
    event.preventDefault();
    setOver(is);
  };
  const drop = (event: DragEvent) => {
    over(event, false);
    void take(ofDrop(event.dataTransfer.items));
  };
  return (
    <section
      className="wr-drop"
      data-over={isOver || undefined}
      aria-label={label}
      aria-busy={state.reads || undefined}
      onDragOver={(event) => over(event, true)}
      onDragLeave={(event) => over(event, false)}
      onDrop={drop}
    >
      <Stack gap="xs">
        {parcel ? (
          <Chosen parcel={parcel} />
        ) : (
          <Text size="sm">Drop a folder, a notebook or a script here. {about}</Text>
        )}
        {state.fault && (
          <Text size="sm" role="alert" className="wr-tone-bad">
            {state.fault}
          </Text>
        )}
        <Group gap="xs">
          <Choose name="Choose a folder" isFolder loading={state.reads} take={(list) => void take(list)} />
          <Choose name="Choose files" loading={state.reads} take={(list) => void take(list)} />
          {parcel && (
            <Button variant="subtle" color="gray" onClick={() => change(null)}>
              Send no files
            </Button>
          )}
        </Group>
      </Stack>
    </section>
  );
}

/** How much of an upload is on its way. */
export function Sent({ sent }: { sent: { bytes: number; of: number } }) {
  return (
    <div>
      <Text size="sm" role="status" mb={4}>
        Sending the files: {bytes(sent.bytes)} of {bytes(sent.of)}
      </Text>
      <Progress value={(100 * sent.bytes) / sent.of} aria-label="Files sent" />
    </div>
  );
}

function Chosen({ parcel }: { parcel: Parcel }) {
  return (
    <>
      <Text size="sm" role="status">
        <strong>{plain(parcel.title)}</strong>: {count(parcel.files.length)}{" "}
        {parcel.files.length === 1 ? "file" : "files"}, {bytes(parcel.sizeBytes)}
      </Text>
      {leftLines(parcel.left).map((line) => (
        <Text key={line} size="xs" className="wr-quiet wr-break">
          {plain(line)}
        </Text>
      ))}
    </>
  );
}

const FOLDER = { webkitdirectory: "" } as InputHTMLAttributes<HTMLInputElement>;

interface ChooseProps {
  name: string;
  isFolder?: boolean;
  loading: boolean;
  take: (found: Promise<Found>) => void;
}

/** A button that opens the browser's own window for files. */
function Choose({ name, isFolder = false, loading, take }: ChooseProps) {
  const input = useRef<HTMLInputElement>(null);
  const chosen = ({ currentTarget }: ChangeEvent<HTMLInputElement>) => {
    if (currentTarget.files?.length) take(Promise.resolve(ofInput(currentTarget.files)));
    currentTarget.value = ""; // the same folder may be chosen again, after it has changed
  };
  return (
    <>
      <Button variant="default" loading={loading} onClick={() => input.current?.click()}>
        {name}
      </Button>
      <input ref={input} type="file" multiple hidden onChange={chosen} {...(isFolder ? FOLDER : {})} />
    </>
  );
}
