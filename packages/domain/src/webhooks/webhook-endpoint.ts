/** The maximum number of a merchant's endpoints. */
export const endpointsMax = 5;

/** Stands for all types of events, including types added later. */
export const allEventTypes = '*';

/** The states that a merchant can give an endpoint. */
export const endpointStatuses = ['enabled', 'disabled'] as const;

/** One of {@link endpointStatuses}. */
export type EndpointStatus = (typeof endpointStatuses)[number];

/** The status of a delivery. `failed`: it was not delivered, and no further attempt follows. */
export const deliveryStatuses = ['pending', 'delivered', 'failed'] as const;

/** One of {@link deliveryStatuses}. */
export type DeliveryStatus = (typeof deliveryStatuses)[number];

/** The form of an endpoint's id. */
export const endpointIdForm = /^we_[0-9a-f]{32}$/;
