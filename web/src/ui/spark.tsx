// The way an amount went over the snapshots, as a line of text height. Equal steps, from zero.
const WIDTH = 96;
const HEIGHT = 20;

export function Spark({ values }: { values: readonly number[] }) {
  const most = Math.max(0, ...values);
  const step = values.length > 1 ? WIDTH / (values.length - 1) : WIDTH;
  const y = (value: number) => HEIGHT - 1 - (most > 0 ? Math.max(0, value) / most : 0) * (HEIGHT - 2);
  const points = values.map((value, i) => `${(i * step).toFixed(1)},${y(value).toFixed(1)}`).join(' ');
  return (
    <svg
      class="spark"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      aria-hidden="true"
      focusable="false">
      <polygon points={`0,${HEIGHT} ${points} ${WIDTH},${HEIGHT}`} />
      <polyline points={points} vector-effect="non-scaling-stroke" />
    </svg>
  );
}
