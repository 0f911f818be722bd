import { fastify } from 'fastify';
import { portOf, reportReady } from '../programs.ts';
import { createInsert, hasValidCredentials, type OrderFields } from './orders.ts';

// A service written with Fastify and its JSON schemas, with one insert per request.

const text = (maxLength: number) => ({ type: 'string', minLength: 1, maxLength });
const properties = {
  order_id: text(128),
  order_amount: { type: 'number', exclusiveMinimum: 0, maximum: 9_999_999_999_999.99 },
  order_currency: { type: 'string', pattern: '^[A-Z]{3}$' },
  order_note: text(1_000),
  service_type: { type: 'string', enum: ['DIGITAL', 'PHYSICAL_GOODS'] },
  customer_name: text(255),
  customer_email: { type: 'string', format: 'email', maxLength: 254 },
  customer_phone: text(32),
  customer_address_line1: text(255),
  customer_address_line2: { type: 'string', maxLength: 255 },
  customer_address_city: text(100),
  customer_address_state: text(100),
  customer_address_country: text(100),
  customer_address_postal_code: text(20),
  order_checksum: text(256),
  return_url: { type: 'string', format: 'uri', maxLength: 2_048 },
};
const required = Object.keys(properties).filter((name) => name !== 'customer_address_line2');

const insert = createInsert();
const app = fastify();
app.post('/order', { schema: { body: { type: 'object', properties, required } } }, async (request, reply) => {
  if (!hasValidCredentials(request.headers['x-client-id'], request.headers['x-client-secret']))
    return reply.code(401).send();
  return reply.code(201).send(await insert(request.body as OrderFields));
});
await app.listen({ port: 0, host: '127.0.0.1' });
reportReady({ http: portOf(app.server) });
