/** The 16 fields of an order, in the order of the API contract. Errors are listed in this order. */
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
] as const;

/** One of {@link orderFieldNames}. */
export type OrderFieldName = (typeof orderFieldNames)[number];

/** The fields of the request that creates an order: the 16 fields, and the optional additions. */
export const requestFieldNames = [...orderFieldNames, 'order_expires_at', 'metadata'] as const;

/** One of {@link requestFieldNames}. */
export type RequestFieldName = (typeof requestFieldNames)[number];

/** What an order is for: digital services or shipped goods. */
export const serviceTypes = ['DIGITAL', 'PHYSICAL_GOODS'] as const;

/** One of {@link serviceTypes}. */
export type ServiceType = (typeof serviceTypes)[number];
