// Fields in panels, by what they are about; those without a value wait behind one line.
import { count, fieldText } from "./format.ts";
import { Facts, Panel } from "./page.tsx";

interface Field {
  name: string;
  label: string;
  value: number | string | boolean | null;
  unit: string;
}

interface FieldGroupsProps<One extends Field> {
  groups: readonly { name: string; fields: readonly One[] }[];
  /** What is known of a field, in its tooltip. */
  said: (field: One) => string;
  /** Who does not give the others: "this card". */
  by: string;
}

export function FieldGroups<One extends Field>({ groups, said, by }: FieldGroupsProps<One>) {
  const absent = groups.flatMap((group) => group.fields.filter((field) => field.value === null));
  const row = (field: One) =>
    [
      field.label,
      <span key={field.name} title={said(field)} data-field={field.name} className="wr-break">
        {fieldText(field.value, field.unit)}
      </span>,
    ] as const;
  return (
    <>
      <div className="wr-field-grid">
        {groups.map((group) => {
          const present = group.fields.filter((field) => field.value !== null);
          return (
            present.length > 0 && (
              <Panel key={group.name} title={group.name}>
                <Facts rows={present.map(row)} />
              </Panel>
            )
          );
        })}
      </div>
      {absent.length > 0 && (
        <details className="wr-details">
          <summary>
            {count(absent.length)} readings that {by} does not give
          </summary>
          <Facts rows={absent.map(row)} />
        </details>
      )}
    </>
  );
}
