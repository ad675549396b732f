// The arithmetic of the page, for tests.
export * from '../types';
