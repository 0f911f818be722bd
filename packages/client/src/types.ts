// The shapes of the JSON API. Tests compare them with the rules and the protobuf contract of the gateway.

/** What an order is for: digital services or shippable goods. */
export type ServiceType = 'DIGITAL' | 'PHYSICAL_GOODS';

/** `PAID` and `CANCELLED` are final. An `EXPIRED` order still becomes `PAID` if the customer paid before its expiry. */
export type OrderStatus = 'UN_PAID' | 'PAID' | 'EXPIRED' | 'CANCELLED';

/** Only orders in `live` mode move money. */
export type Mode = 'live' | 'test';

/** An order to create. Lengths are in Unicode code points. The client adds the checksum. */
export interface NewOrder {
  /** Your identifier: 1 to 128 characters, unique among your orders. Sending it again never creates a second order. */
  readonly order_id: string;
  /**
   * In units of the currency, with at most two decimals: `10`, `10.5` or `'10.50'`. Pass a decimal from your database
   * as text to keep it exact. A number with more decimals, such as 0.1 + 0.2, throws a RangeError, because amounts are
   * never rounded.
   */
  readonly order_amount: number | string;
  /** An upper-case ISO 4217 code. */
  readonly order_currency: string;
  /** 1 to 1,000 characters; line breaks and tabs are allowed. */
  readonly order_note: string;
  readonly service_type: ServiceType;
  readonly customer_name: string;
  readonly customer_email: string;
  readonly customer_phone: string;
  readonly customer_address_line1: string;
  readonly customer_address_line2?: string | null | undefined;
  readonly customer_address_city: string;
  readonly customer_address_state: string;
  readonly customer_address_country: string;
  readonly customer_address_postal_code: string;
  /** Where the customer returns from the payment page: an absolute http or https URL. */
  readonly return_url: string;
  /**
   * The language of the payment page: a language tag such as `de` or `pt-BR`. If it is absent, the customer's browser
   * decides.
   */
  readonly customer_locale?: string | null | undefined;
  /** When the order expires: a Date, or an RFC 3339 time (seconds optional), 1 minute to 366 days ahead. */
  readonly order_expires_at?: string | Date | undefined;
  /**
   * Your own data: at most 20 keys of 1 to 40 characters `A-Za-z0-9_.-`, values of 1 to 500 characters, 8 KiB in total.
   */
  readonly metadata?: Readonly<Record<string, string>> | undefined;
}

/** The response to a new order. Times are ISO 8601 with milliseconds and offset: `2026-11-20T21:01:42.172+00:00`. */
export interface CreatedOrder {
  /** The gateway's identifier: positive, at most 2^53 - 1. */
  readonly service_order_id: number;
  readonly created_at: string;
  readonly order_id: string;
  readonly order_status: OrderStatus;
  /** 32 letters and digits. Anyone who knows it can open the payment page. */
  readonly order_token: string;
  /** The page where the customer pays. */
  readonly payment_link: string;
}

/** A stored order with its current status. Members without a value are absent. Never contains the customer's data. */
export interface Order extends CreatedOrder {
  readonly mode: Mode;
  /** In units of the currency: at most 15 digits, which a number represents exactly. */
  readonly order_amount: number;
  readonly order_currency: string;
  readonly order_note: string;
  readonly service_type: ServiceType;
  readonly order_expires_at?: string;
  readonly paid_at?: string;
  readonly payment_id?: string;
  readonly cancelled_at?: string;
  /**
   * A payment is in progress until this time, so the order can neither be cancelled nor expire. Absent if no payment is
   * in progress.
   */
  readonly payment_in_progress_until?: string;
  /** The latest 20 refused payments, oldest first. Absent if there are none. */
  readonly refused_payments?: readonly RefusedPayment[];
  readonly metadata?: Readonly<Record<string, string>>;
  /** `manual` if you recorded the payment yourself. A newer gateway may send other values. */
  readonly payment_method?: string;
  /** The refunds of the payments, in the order of their last changes. Absent if there are none. */
  readonly refunds?: readonly Refund[];
  /** How much of the order's payment was refunded, by refunds that succeeded. Absent if nothing was. */
  readonly refunded_amount?: number;
  /** The disputes of the payments, in the order of their last changes. Absent if there are none. */
  readonly disputes?: readonly Dispute[];
  /**
   * Until then, a payment that was made before the expiry can be reported: keep the goods until then. Absent unless
   * EXPIRED.
   */
  readonly payable_until?: string;
}

/** A refund to make. */
export interface NewRefund {
  /** Your identifier of the refund: 1 to 128 characters, unique within the order. Makes retries safe. */
  readonly refund_id: string;
  /** In units of the currency. Absent: all that can be refunded. */
  readonly refund_amount?: number | undefined;
  /** Your own note: up to 1,000 characters. */
  readonly refund_note?: string | undefined;
}

/** `SUCCEEDED` can still become `FAILED` if the customer's bank returns the money. A newer gateway may add values. */
export type RefundStatus = 'PENDING' | 'SUCCEEDED' | 'FAILED';

/** A refund of a payment, or of a part of it. */
export interface Refund {
  /** Your identifier, or the provider's if the refund was made there. */
  readonly refund_id: string;
  readonly payment_id: string;
  /** In units of the currency: at most 15 digits, which a number represents exactly. */
  readonly amount: number;
  readonly currency: string;
  readonly status: RefundStatus;
  readonly reason?: string;
  readonly refund_note?: string;
  readonly provider_refund_id?: string;
  readonly created_at: string;
  /** When the status last changed. */
  readonly updated_at: string;
  readonly refunded_at?: string;
}

/** `INQUIRY` moves no money. The bank has the money of a dispute that is `OPEN` or `LOST`. */
export type DisputeStatus = 'INQUIRY' | 'OPEN' | 'WON' | 'LOST';

/** A payment that the customer disputes at the bank. */
export interface Dispute {
  readonly dispute_id: string;
  readonly payment_id: string;
  readonly amount: number;
  readonly currency: string;
  readonly status: DisputeStatus;
  readonly reason?: string;
  readonly created_at: string;
  /** When the status last changed. */
  readonly updated_at: string;
}

/** A payment that reached you outside any checkout system. Send either paid_at or paid_on. */
export interface ManualPayment {
  /** Your identifier of the payment: 1 to 128 characters. A payment pays one order. */
  readonly payment_id: string;
  /** When the customer paid: a Date, or an RFC 3339 time (seconds optional), before the order's expiry. */
  readonly paid_at?: string | Date | undefined;
  /** The date on which the customer paid, `YYYY-MM-DD`, if you know no time. */
  readonly paid_on?: string | undefined;
  /** Your own note: up to 1,000 characters. */
  readonly payment_note?: string | undefined;
}

/** A payment that a customer made but that was refused. The checkout system must refund it. */
export interface RefusedPayment {
  readonly payment_id: string;
  /** In units of the currency: at most 15 digits, which a number represents exactly. */
  readonly amount: number;
  readonly currency: string;
  readonly paid_at: string;
  readonly code: RefusalCode;
  readonly refused_at: string;
  /** When the whole amount had gone back, by refunds or by disputes that were lost. Absent until then. */
  readonly refunded_at?: string;
}

/** Why a payment was refused. A newer gateway may send other codes. */
export type RefusalCode = 'order_already_paid' | 'order_cancelled' | 'order_expired' | 'payment_mismatch';

/** Which orders to list, and how many to fetch at once. */
export interface OrderFilter {
  readonly status?: OrderStatus | undefined;
  readonly currency?: string | undefined;
  /** Created at this time or later: a Date, or an RFC 3339 time (seconds optional). */
  readonly createdFrom?: string | Date | undefined;
  /** Created before this time. */
  readonly createdTo?: string | Date | undefined;
  /** Orders with these values in their metadata, at most two. */
  readonly metadata?: Readonly<Record<string, string>> | undefined;
  /** Orders in one request, 1 to 100; 20 by default. The iterator sends as many requests as it needs. */
  readonly limit?: number | undefined;
}

/** The types of events. A newer gateway may add types, so ignore those that you don't know. */
export type EventType =
  | 'order.paid'
  | 'order.expired'
  | 'order.cancelled'
  | 'order.payment_refused'
  | 'order.refunded'
  | 'order.refund_failed'
  | 'order.disputed'
  | 'order.dispute_closed';

/**
 * A change of an order. The same event may arrive more than once, and events may arrive in any order, so compare `id`.
 */
export interface OrderEvent {
  /** `evt_` and a unique text. Webhooks send it in the header `webhook-id`. */
  readonly id: string;
  readonly type: EventType;
  readonly timestamp: string;
  /** The order as it was after the change. */
  readonly data: Order;
}

/** The message of a ping. It belongs to no order. */
export interface TestEvent {
  readonly id: string;
  readonly type: 'webhook.test';
  readonly timestamp: string;
  readonly data: Readonly<Record<string, never>>;
}

/** Which events to list. */
export interface EventFilter {
  /** The `next_cursor` of the previous page, with the same filters. */
  readonly cursor?: string | undefined;
  /** The maximum number of events on the page: 1 to 100, 20 by default. */
  readonly limit?: number | undefined;
  readonly types?: readonly EventType[] | undefined;
  /** Only events of this order. */
  readonly orderId?: string | undefined;
  /** How long the gateway may wait for the first event, up to 20 s. */
  readonly waitSeconds?: number | undefined;
}

/** A part of the event feed, oldest first. */
export interface EventPage {
  readonly events: readonly OrderEvent[];
  /** Store it after you have processed the events, and pass it to the next `listEvents`. Present on every page. */
  readonly next_cursor: string;
}

/** A new webhook endpoint. */
export interface NewWebhookEndpoint {
  /** An https URL with a public address, up to 2,048 characters. */
  readonly url: string;
  /** The types to deliver. Absent, empty or `*` alone: all, including types added later. */
  readonly event_types?: readonly (EventType | '*')[] | undefined;
}

/** A change to a webhook endpoint. Absent members stay the same. */
export interface WebhookEndpointChange extends Partial<NewWebhookEndpoint> {
  readonly status?: WebhookEndpointStatus | undefined;
}

/** Nothing is delivered to a `disabled` endpoint. */
export type WebhookEndpointStatus = 'enabled' | 'disabled';

/** A URL to which events are delivered, and its state. */
export interface WebhookEndpoint {
  /** `we_` and 32 hexadecimal digits. */
  readonly id: string;
  readonly url: string;
  readonly event_types: readonly (EventType | '*')[];
  readonly status: WebhookEndpointStatus;
  readonly created_at: string;
  /** Whether the endpoint's signing secret also signs customers' return links. True for the oldest endpoint. */
  readonly signs_returns: boolean;
  /** When deliveries began to fail. Absent while they succeed. */
  readonly failing_since?: string;
  readonly disabled_at?: string;
}

/** An endpoint with its new signing secret, which is never returned again. */
export interface SignedWebhookEndpoint extends WebhookEndpoint {
  /** `whsec_` and the base64 of 32 bytes. */
  readonly signing_secret: string;
}

/** The result of a ping. */
export interface PingResult {
  /** Whether the endpoint responded with a 2xx status. */
  readonly delivered: boolean;
  /** What happened, such as `HTTP 204` or `ECONNREFUSED`. */
  readonly result: string;
}

/** `failed` once all attempts have failed or the endpoint was disabled. */
export type DeliveryStatus = 'pending' | 'delivered' | 'failed';

/** Which deliveries to list, and how many to fetch at once. */
export interface DeliveryFilter {
  readonly status?: DeliveryStatus | undefined;
  /** Only deliveries of this order's events. */
  readonly orderId?: string | undefined;
  /** Deliveries in one request, 1 to 100; 20 by default. */
  readonly limit?: number | undefined;
}

/** The delivery of an event to an endpoint. */
export interface WebhookDelivery {
  readonly event_id: string;
  readonly type: EventType;
  readonly created_at: string;
  readonly status: DeliveryStatus;
  /** The number of attempts. */
  readonly attempts: number;
  readonly last_attempt_at?: string;
  /** The result of the last attempt, such as `HTTP 500`. */
  readonly last_result?: string;
  readonly next_attempt_at?: string;
  readonly delivered_at?: string;
}

/** A client secret without its value. */
export interface ClientSecret {
  readonly id: string;
  readonly created_at: string;
  /** When the secret stops or stopped working. Absent if it never does. */
  readonly ends_at?: string;
}

/** A client secret with its value, which is never returned again. */
export interface NewClientSecret extends ClientSecret {
  /** `sk_` and 43 letters and digits. */
  readonly client_secret: string;
}

/** How a merchant's payment pages look, and where they send customers with questions. */
export interface Brand extends BrandTexts {
  /** Where the payment page loads the logo from. */
  readonly logo_url?: string;
}

/** A change to a brand. Absent members stay the same, and empty members are removed. */
export interface BrandChange extends BrandTexts {
  /** The bytes of a PNG, JPEG or WebP image: at most 262,144 bytes, 2,000 pixels wide and 2,000 pixels high. */
  readonly logo?: Uint8Array | undefined;
}

interface BrandTexts {
  /** The colour of buttons: `#` and six hexadecimal digits. */
  readonly color?: string | undefined;
  readonly support_email?: string | undefined;
  readonly support_url?: string | undefined;
  readonly terms_url?: string | undefined;
  readonly privacy_url?: string | undefined;
  /** How customers can pay without the Pay button: text with line breaks, at most 1,000 characters. */
  readonly payment_instructions?: string | undefined;
}

/** An invalid field of an order, or an invalid parameter. */
export interface FieldError {
  readonly field: string;
  readonly code: FieldErrorCode;
  readonly message: string;
}

/** Why a field or parameter is invalid. */
export type FieldErrorCode =
  | 'missing'
  | 'wrong_type'
  | 'blank'
  | 'too_long'
  | 'too_short'
  | 'not_allowed'
  | 'bad_format'
  | 'bad_characters'
  | 'too_precise'
  | 'out_of_range'
  | 'unknown_field';

/** The error codes of the JSON API. A newer gateway may send other codes, so handle unknown ones. */
export type ErrorCode =
  | 'malformed_request'
  | 'malformed_json'
  | 'invalid_order'
  | 'invalid_request'
  | 'unauthenticated'
  | 'permission_denied'
  | 'checksum_mismatch'
  | 'not_found'
  | 'method_not_allowed'
  | 'request_timeout'
  | 'order_id_conflict'
  | 'payment_id_conflict'
  | 'payment_in_progress'
  | 'order_already_paid'
  | 'order_cancelled'
  | 'order_expired'
  | 'order_not_paid'
  | 'refund_exceeds_payment'
  | 'refund_id_conflict'
  | 'refunds_not_supported'
  | 'webhook_url_not_allowed'
  | 'too_many_endpoints'
  | 'webhook_endpoint_disabled'
  | 'webhooks_not_configured'
  | 'too_many_client_secrets'
  | 'last_client_secret'
  | 'cursor_expired'
  | 'body_too_large'
  | 'unsupported_media_type'
  | 'headers_too_large'
  | 'rate_limited'
  | 'overloaded'
  | 'unavailable'
  | 'deadline_exceeded'
  | 'internal';
