/** Optional text fields that were added to the API contract. On a replay, they are compared only if they were sent. */
export const additionalFieldNames = ['customer_locale'] as const;

/**
 * The fields of an order: the 16 of the original API contract, in its order, then the additional ones. Errors are
 * listed in this order.
 */
export const orderFieldNames = [
  'order_id',
  'order_amount',
  'order_currency',
  'order_note',
  'service_type',
  'customer_name',
  'customer_email',
  'customer_phone',
  'customer_address_line1',
  'customer_address_line2',
  'customer_address_city',
  'customer_address_state',
  'customer_address_country',
  'customer_address_postal_code',
  'order_checksum',
  'return_url',
  ...additionalFieldNames,
] as const;

/** One of {@link orderFieldNames}. */
export type OrderFieldName = (typeof orderFieldNames)[number];

/** Whether a field is one of {@link additionalFieldNames}. */
export function isAdditional(name: string): boolean {
  return (additionalFieldNames as readonly string[]).includes(name);
}

/** The fields of the request that creates an order: those of the order, and those with a separate rule. */
export const requestFieldNames = [...orderFieldNames, 'order_expires_at', 'metadata'] as const;

/** One of {@link requestFieldNames}. */
export type RequestFieldName = (typeof requestFieldNames)[number];

/** What an order is for: digital services or shipped goods. */
export const serviceTypes = ['DIGITAL', 'PHYSICAL_GOODS'] as const;

/** One of {@link serviceTypes}. */
export type ServiceType = (typeof serviceTypes)[number];
