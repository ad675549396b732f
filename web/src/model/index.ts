// The arithmetic of the page: pure functions, no DOM. Tests import it as one module.
export * from '../types';
export { DataError, decodeBlock, fromBase64 } from './data';
export { FilterError, compileExpression, quoteExpression } from './expression';
export {
  erfc, estimateBytes, estimateDifference, estimateInterval, estimateObjects, estimatePValue, estimateSamples,
  logGamma, significant,
} from './estimate';
export { amountAt, changeAt, intervalOf, intervalOfAmount } from './amounts';
export { makeView, passingRows } from './view';
export { threadKeys } from './entries';
export { entryTotals, rankEntries } from './totals';
export { makeTree, sandwich } from './tree';
export { treeChanges } from './changes';
export { type Lines, lines } from './lines';
export { type Trace, entriesOf, traces } from './traces';
export { type Growth, type Status, growth } from './growth';
export {
  amountText, bytesText, changePercentText, changeText, countText, durationText, errorText, percentText, timeText,
  valueText,
} from './words';
export { trimTemplates, visible } from './names';
export { entryId, findEntry, findNode, nodeId } from './ids';
export { type Report, commandLine, shellWord } from './export/command';
export { folded } from './export/folded';
export { speedscope } from './export/speedscope';
export { callgrind } from './export/callgrind';
export { csv } from './export/csv';
export { markdown } from './export/markdown';
export { pprof } from './export/pprof';
