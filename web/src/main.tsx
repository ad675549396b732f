// Where the page begins.
import { render } from 'preact';

render(<main>heapgauge</main>, document.getElementById('app')!);
