// What the rows of a ranking are, and which of their amounts is ranked.
import * as s from '../settings';

interface ChoiceProps {
  test: string;
  title: string;
  help: string;
  pressed: boolean;
  run: () => void;
}

function Choice({ test, title, help, pressed, run }: ChoiceProps) {
  return (
    <button type="button" aria-pressed={pressed} data-test={test} title={help} onClick={run}>
      {title}
    </button>
  );
}

export function RankSwitches({ by }: { by: string }) {
  const byStack = s.rankBy.value === 'stack';
  const rank = (rows: 'function' | 'stack') => () => {
    s.rankBy.value = rows;
  };
  const amount = (of: 'flat' | 'cum') => () => {
    s.rankOf.value = of;
  };
  return (
    <>
      <div class="segments" role="group" aria-label="Rows">
        <Choice test="rank-function" title={`By ${by}`} help="One row for each" pressed={!byStack} run={rank('function')} />
        <Choice test="rank-stack" title="By stack" help="One row for each whole stack" pressed={byStack} run={rank('stack')} />
      </div>
      {!byStack && (
        <div class="segments" role="group" aria-label="Amounts">
          <Choice
            test="rank-flat"
            title="Flat"
            help="What each allocated itself"
            pressed={s.rankOf.value === 'flat'}
            run={amount('flat')}
          />
          <Choice
            test="rank-cum"
            title="Cum"
            help="With all that it called"
            pressed={s.rankOf.value === 'cum'}
            run={amount('cum')}
          />
        </div>
      )}
    </>
  );
}
