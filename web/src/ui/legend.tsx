// What the colours of the flame graph mean.
import { binaries } from '../flame/paint';
import { css, DARK, GONE, GREW, HUE, LIGHT, NEW, NOISE, SHADES, SHRANK } from '../flame/palette';
import { visible } from '../model';
import { theData, view } from '../state';
import { cutMiddle, fileName } from './name';
import { dark } from './theme';

const SHOWN = 8;

function Swatch({ fill, kind }: { fill: number; kind?: string }) {
  return (
    <span
      class={`swatch ${kind ?? ''}`}
      style={{ backgroundColor: css((dark.value ? DARK : LIGHT).fills[fill]) }}
      aria-hidden="true"
    />
  );
}

export function Legend() {
  if (view.value.diff)
    return (
      <section class="colours" aria-label="Colours">
        <h2 class="part">Colours</h2>
        <ul>
          <li>
            <Swatch fill={GREW + 2} />+ grew
          </li>
          <li>
            <Swatch fill={SHRANK + 2} />− shrank
          </li>
          <li>
            <Swatch fill={NEW} kind="new" />
            new: nothing in the base
          </li>
          <li>
            <Swatch fill={GONE} kind="gone" />
            gone: nothing is left
          </li>
          <li>
            <Swatch fill={NOISE} />
            noise: sampling alone explains it
          </li>
        </ul>
      </section>
    );
  const { byName, legend } = binaries(theData());
  if (byName)
    return null;
  return (
    <section class="colours" aria-label="Colours">
      <h2 class="part">Colours: binaries</h2>
      <ul>
        {legend.slice(0, SHOWN).map(({ path, hue }) => (
          <li key={path} class="mono" title={visible(cutMiddle(path, 400))}>
            <Swatch fill={HUE + hue * SHADES} />
            {visible(cutMiddle(fileName(path) || path, 50))}
          </li>
        ))}
        {legend.length > SHOWN && (
          <li>
            <Swatch fill={HUE + legend[SHOWN].hue * SHADES} />
            all others
          </li>
        )}
      </ul>
    </section>
  );
}
