import type { AccountId } from '../accounts/account.ts';
import type { EventPosition } from '../events/event-feed.ts';
import { readOrderId } from '../events/parse-event-list.ts';
import { unlessInvalid } from '../requests/check-field.ts';
import {
  cursorOf,
  knownParameters,
  type ListInput,
  type ParsedList,
  readChoice,
  readCursor,
  readLimit,
  scopeOf,
} from '../requests/list-parameters.ts';
import { type DeliveryStatus, deliveryStatuses } from './webhook-endpoint.ts';

/** The filter of a list of deliveries. */
export interface DeliveryListFilter {
  readonly status: DeliveryStatus | undefined;
  /** Only deliveries of this order's events. */
  readonly orderId: string | undefined;
  /** The id of the event after which the page begins. */
  readonly after: string | undefined;
}

/** Checks the parameters of a list of an endpoint's deliveries as `parseOrderList` does. */
export function parseDeliveryList(
  merchantId: AccountId,
  endpointId: string,
  input: ListInput,
): ParsedList<DeliveryListFilter, Pick<EventPosition, 'eventId'>> {
  const { values, errors } = knownParameters(input, ['id', 'status', 'order_id', 'limit', 'cursor']);
  const filter = {
    status: readChoice('status', values.status, { values: deliveryStatuses }, errors),
    orderId: readOrderId(values.order_id, errors),
  };
  const limit = readLimit(values.limit, errors);
  const scope = scopeOf(`deliveries ${endpointId}`, merchantId, filter);
  const [after] = readCursor(values.cursor, scope, /^(evt_[0-9a-f]{32})$/, errors) ?? [];
  return unlessInvalid(errors, {
    filter: { ...filter, after, limit },
    cursorAfter: ({ eventId }) => cursorOf(scope, eventId),
  });
}
