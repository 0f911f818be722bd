export { checkAnyText } from './check-field.ts';
export * from './field-rules.ts';
export { parseTime, timePattern } from './iso-time.ts';
export { pageLimit, parseCompleteList } from './list-parameters.ts';
