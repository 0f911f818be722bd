import { type EventType, eventTypes } from '@order-gateway/domain/events';
import type { JsonSchema } from './schemas.ts';
import { schemas } from './schemas.ts';

/** A JSON Schema 2020-12 that needs no other document. */
interface SchemaDocument extends JsonSchema {
  readonly $schema: string;
  readonly $id: string;
  readonly title: string;
  readonly $defs: Readonly<Record<string, JsonSchema>>;
}

/** The JSON Schema of each event by its type. It describes a webhook's body and an item of `GET /events`. */
export function eventSchemas(baseUrl: string): Readonly<Record<EventType, SchemaDocument>> {
  const { Event = {}, Order = {}, RefusedPayment = {} } = inOneDocument(schemas);
  const schemaOf = (type: EventType): SchemaDocument => ({
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $id: `${baseUrl}${eventSchemaPath(type)}`,
    title: type,
    ...Event,
    properties: { ...Event.properties, type: { ...Event.properties?.type, enum: [type] } },
    $defs: { Order, RefusedPayment },
  });
  return Object.fromEntries(eventTypes.map((type) => [type, schemaOf(type)])) as Record<EventType, SchemaDocument>;
}

/** The path of an event's schema below the base URL. */
export function eventSchemaPath(type: EventType): string {
  return `/docs/events/${type}.schema.json`;
}

function inOneDocument<Value>(value: Value): Value {
  return JSON.parse(JSON.stringify(value).replaceAll('#/components/schemas/', '#/$defs/'));
}
