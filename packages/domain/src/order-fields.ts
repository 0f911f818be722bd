/**
 * The sixteen fields of an order as the interface names them, in the interface's order: the order in which errors are told and
 * in which the checksum reads them.
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
] as const;

/** One of {@link orderFieldNames}. */
export type OrderFieldName = (typeof orderFieldNames)[number];

/** What an order may be for: digital services, or goods that are shipped. */
export const serviceTypes = ['DIGITAL', 'PHYSICAL_GOODS'] as const;

/** One of {@link serviceTypes}. */
export type ServiceType = (typeof serviceTypes)[number];
