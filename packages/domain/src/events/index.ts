export { type EventType, eventTypes } from '../orders/order-states.ts';
export * from './event-feed.ts';
export * from './parse-event-list.ts';
