// Where the numbers come from: sources, sampling rates, sizes, notes, and the command line that shows the same.
import { visible } from '../model';
import { theData } from '../state';
import { viewCommand } from './command';
import { copy } from './copy';
import { cutMiddle } from './name';
import { amountText, timeText } from './numbers';

function rateText(rate: number): string {
  return rate === 0 ? 'unknown' : rate <= 1 ? 'every block' : `one in ${amountText({ unit: 'bytes' }, rate)}`;
}

export function AboutView() {
  const data = theData();
  const counts: [string, number][] = [
    ['snapshots', data.snapshots.length],
    ['stacks', data.rows.n],
    ['tree nodes', data.nodes.n],
    ['frames', data.frames.n],
    ['binaries', data.mappings.n],
  ];
  return (
    <div class="page about" data-test="about">
      <div class="scroll" tabIndex={0} role="region" aria-label="About these data">
        <h2>Sources</h2>
        <table class="plain">
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">Snapshot</th>
              <th scope="col">Time</th>
              <th scope="col">Sampled</th>
              <th scope="col">PID</th>
            </tr>
          </thead>
          <tbody>
            {data.sources.slice(0, 1000).map((source, i) => (
              <tr key={i}>
                <td class="text mono">{visible(cutMiddle(source.name, 300))}</td>
                <td class="number">{source.snapshot + 1}</td>
                <td>{source.time_ms === null ? '–' : timeText(source.time_ms)}</td>
                <td>
                  {rateText(source.rate)}
                  {source.raw_counts ? ', raw counts' : ''}
                </td>
                <td class="number">{source.pid ?? '–'}</td>
              </tr>
            ))}
          </tbody>
        </table>
        {data.program && (
          <>
            <h2>Program</h2>
            <p class="mono">{visible(cutMiddle(data.program, 1000))}</p>
          </>
        )}
        <h2>Size</h2>
        <p>
          {counts.map(([what, n]) => `${n.toLocaleString('en')} ${what}`).join(' · ')}
          {data.rest && ` · ${data.rest.rows.toLocaleString('en')} small rows are in (other)`}
        </p>
        {data.notes.length > 0 && (
          <>
            <h2>Notes</h2>
            <ul>
              {data.notes.map(note => (
                <li key={note}>{visible(cutMiddle(note, 2000))}</li>
              ))}
            </ul>
          </>
        )}
        <h2>The same on the command line</h2>
        <p>
          <code class="command">{visible(cutMiddle(viewCommand(), 4000))}</code>{' '}
          <button
            type="button"
            data-test="about-command"
            onClick={() => {
              void copy(viewCommand(), 'the command line');
            }}>
            Copy
          </button>
        </p>
      </div>
    </div>
  );
}
