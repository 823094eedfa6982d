// A line of a few pixels: how something went of late, in words for who does not see it.
const [WIDE, HIGH] = [96, 22];

/** values: from 0 to 1, null where nothing is known. */
export function Spark({ values, label }: { values: readonly (number | null)[]; label: string }) {
  const step = WIDE / Math.max(1, values.length - 1);
  let pen = "M";
  const path = values
    .map((value, index) => {
      if (value === null) {
        pen = "M";
        return "";
      }
      const point = `${pen}${(index * step).toFixed(1)} ${(HIGH - 1 - (HIGH - 3) * Math.min(1, value)).toFixed(1)}`;
      pen = "L";
      return point;
    })
    .join("");
  return (
    <svg width={WIDE} height={HIGH} role="img" aria-label={label} className="wr-spark">
      <path d={`M0 ${HIGH - 0.5}H${WIDE}`} stroke="var(--wr-line-strong)" />
      <path d={path || "M0 0"} fill="none" stroke="var(--wr-meter-fill)" strokeWidth="1.5" />
    </svg>
  );
}
