// Light or dark: what the system says, or what the theme button says.
import { computed, effect, signal } from '@preact/signals';
import { theme } from '../settings';

const query = matchMedia('(prefers-color-scheme: dark)');
const system = signal(query.matches);
query.addEventListener('change', event => {
  system.value = event.matches;
});

export const dark = computed(() => (theme.value === 'auto' ? system.value : theme.value === 'dark'));

export function nextTheme() {
  theme.value = theme.value === 'auto' ? (system.value ? 'light' : 'dark') : theme.value === 'dark' ? 'light' : 'auto';
}

export function themeStart() {
  effect(() => {
    document.documentElement.dataset['theme'] = dark.value ? 'dark' : 'light';
  });
}
