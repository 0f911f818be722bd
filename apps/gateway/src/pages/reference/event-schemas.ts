import { type EventType, eventTypes } from '@order-gateway/domain/events';
import { schemas } from './schemas.ts';

/**
 * Returns the JSON Schema 2020-12 of each event, by type. Each schema is self-contained. It describes the body of a
 * webhook and an item of `GET /events`.
 */
export function eventSchemas(baseUrl: string) {
  const { Event = {}, Order = {}, RefusedPayment = {}, Refund = {}, Dispute = {} } = inOneDocument(schemas);
  const schemaOf = (type: EventType) => ({
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $id: `${baseUrl}${eventSchemaPath(type)}`,
    title: type,
    ...Event,
    properties: { ...Event.properties, type: { ...Event.properties?.type, enum: [type] } },
    $defs: { Order, RefusedPayment, Refund, Dispute },
  });
  return Object.fromEntries(eventTypes.map((type) => [type, schemaOf(type)])) as Record<
    EventType,
    ReturnType<typeof schemaOf>
  >;
}

/** Returns the path of an event's schema below the base URL. */
export function eventSchemaPath(type: EventType): string {
  return `/docs/events/${type}.schema.json`;
}

function inOneDocument<Value>(value: Value): Value {
  return JSON.parse(JSON.stringify(value).replaceAll('#/components/schemas/', '#/$defs/'));
}
