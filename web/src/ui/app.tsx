// The page: header, timeline, filters, the view that is chosen, and what is known of the selection.
import { useEffect, useErrorBoundary } from 'preact/hooks';
import { type Failure, failure, gone, notice } from '../load';
import { visible } from '../model';
import * as s from '../settings';
import { data, theData } from '../state';
import { AboutView } from './about';
import { Details } from './details';
import { LeaksView } from '../recorder/leaks';
import { NoBlock, RecorderHead, recorderTitle, RecorderLost } from '../recorder/page';
import { isRanking } from '../recorder/state';
import { TargetsView } from '../recorder/targets';
import { FilterBar, FrameOptions } from './filters';
import { FlameView } from './flame';
import { GrowthView } from './growth';
import { Header, HeaderTools, profileName } from './header';
import { Help } from './help';
import { LinesView } from './lines';
import { cutMiddle } from './name';
import { SandwichView } from './sandwich';
import { TableView } from './table';
import { Timeline } from './timeline';
import { TracesView } from './traces';

const TITLES: Record<s.Tab, string> = {
  growth: 'Growth',
  flame: 'Flame graph',
  sandwich: 'Sandwich',
  table: 'Table',
  traces: 'Traces',
  lines: 'Source',
  about: 'About',
  targets: 'Targets',
};
const VIEWS = {
  growth: GrowthView,
  flame: FlameView,
  sandwich: SandwichView,
  table: TableView,
  traces: TracesView,
  lines: LinesView,
  about: AboutView,
  targets: TargetsView,
};

function Tabs() {
  const onKeyDown = (event: KeyboardEvent) => {
    const list = s.tabs();
    const now = list.findIndex(name => name === s.tab.value);
    const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
    if (step === 0)
      return;
    const next = list[(now + step + list.length) % list.length];
    s.tab.value = next;
    document.getElementById(`tab-${next}`)?.focus();
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <nav class="tabs">
      <div role="tablist" aria-label="Views" onKeyDown={onKeyDown}>
        {s.tabs().map((name, i) => (
          <button
            type="button"
            key={name}
            role="tab"
            id={`tab-${name}`}
            data-test={`tab-${name}`}
            aria-selected={s.tab.value === name}
            aria-controls="view"
            tabIndex={s.tab.value === name ? 0 : -1}
            onClick={() => {
              s.tab.value = name;
            }}>
            {TITLES[name]}
            <kbd aria-hidden="true">{i + 1}</kbd>
          </button>
        ))}
      </div>
      <FrameOptions />
    </nav>
  );
}

function Failed({ title, message, advice }: Failure) {
  return (
    <main class="failed">
      <div role="alert" data-test="failure">
        <h1>{title}</h1>
        <p class="mono">{visible(cutMiddle(message, 2000))}</p>
        <p>{advice}</p>
      </div>
      {data.value && (
        <p>
          <button type="button" data-test="anew" onClick={anew}>
            Begin anew
          </button>
        </p>
      )}
    </main>
  );
}

// Without what the address says, which may be what failed.
function anew() {
  history.pushState(null, '', '#');
  location.reload();
}

function useTitle() {
  const name = s.recorder.value ? recorderTitle() : data.value ? profileName() : '';
  useEffect(() => {
    if (name)
      document.title = `${name} – heapgauge`;
  }, [name]);
}

// The ranking stands by itself; what is selected, filters and the other views need a profile.
function Recorder() {
  const View = isRanking.value ? LeaksView : VIEWS[s.tab.value];
  const alone = s.tab.value === 'targets';
  const there = data.value !== null && !alone;
  return (
    <>
      <RecorderHead tools={<HeaderTools />} />
      {there && <Header />}
      {there && <FilterBar />}
      <Tabs />
      <div class={`body ${there && s.details.value ? 'with-details' : ''}`}>
        <main>
          <div role="tabpanel" id="view" aria-labelledby={`tab-${s.tab.value}`}>
            {there || alone || isRanking.value ? <View /> : <NoBlock />}
          </div>
        </main>
        {there && <Details />}
      </div>
      <Notice />
      <RecorderLost />
      <Help />
    </>
  );
}

function Notice() {
  return (
    <div class="toast" role="status" aria-live="polite" data-test="notice">
      {notice.value}
    </div>
  );
}

export function App() {
  useTitle();
  const [error] = useErrorBoundary();
  if (failure.value)
    return <Failed {...failure.value} />;
  if (error)
    return (
      <Failed title="The page failed" message={String(error)} advice="That is a bug of heapgauge: please report it." />
    );
  if (s.recorder.value)
    return <Recorder />;
  if (!data.value)
    return (
      <main class="waiting" aria-busy="true">
        <p>Reading the profile …</p>
      </main>
    );
  const View = VIEWS[s.tab.value];
  return (
    <>
      <Header />
      {theData().snapshots.length > 1 && <Timeline />}
      <FilterBar />
      <Tabs />
      <div class={`body ${s.details.value ? 'with-details' : ''}`}>
        <main>
          <div role="tabpanel" id="view" aria-labelledby={`tab-${s.tab.value}`}>
            <View />
          </div>
        </main>
        <Details />
      </div>
      <Notice />
      {gone.value && (
        <div class="lost" role="status" data-test="gone">
          The server does not answer: what is shown will not get newer.
        </div>
      )}
      <Help />
    </>
  );
}
