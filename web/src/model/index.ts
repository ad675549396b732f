// The arithmetic of the page: pure functions, no DOM. Tests import it as one module.
export * from '../types';
export { DataError, decodeBlock, fromBase64 } from './data';
export { FilterError, quoteExpression } from './expression';
export {
  erfc, estimateBytes, estimateDifference, estimateInterval, estimateObjects, estimatePValue, estimateSamples, logGamma, significant,
} from './estimate';
export { amountAt, changeAt, intervalOf, intervalOfAmount } from './amounts';
export { makeView } from './view';
export { entryTotals, rankEntries } from './totals';
export { makeTree, sandwich } from './tree';
