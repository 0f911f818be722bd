import { type DescMethod, type DescMethodUnary, getOption } from '@bufbuild/protobuf';
import { BrandService } from '../gen/gateway/v1/brand_service_pb.ts';
import { CheckoutService } from '../gen/gateway/v1/checkout_service_pb.ts';
import { CredentialsService } from '../gen/gateway/v1/credentials_service_pb.ts';
import { EventService } from '../gen/gateway/v1/event_service_pb.ts';
import { Caller, operation } from '../gen/gateway/v1/operation_pb.ts';
import { OrderService } from '../gen/gateway/v1/order_service_pb.ts';
import { WebhookService } from '../gen/gateway/v1/webhook_service_pb.ts';
import { http } from '../gen/google/api/annotations_pb.ts';

/** The services of the contract. */
export const services = [
  OrderService,
  EventService,
  WebhookService,
  CredentialsService,
  BrandService,
  CheckoutService,
] as const;

type MethodKey<Service> = Service extends { readonly method: infer Methods }
  ? { [Key in keyof Methods]: Methods[Key] extends { readonly methodKind: 'unary' } ? Key : never }[keyof Methods] &
      string
  : never;

/** The name of a unary method of the contract, such as `CreateOrder`. Names are unique across services. */
export type OperationName = Capitalize<MethodKey<(typeof services)[number]>>;

/** All unary methods of the contract by name, in the contract's order. */
export const methods = Object.fromEntries(
  services
    .flatMap((service) => service.methods)
    .filter(({ methodKind }) => methodKind === 'unary')
    .map((method) => [method.name, method]),
) as Readonly<Record<OperationName, DescMethodUnary>>;

/** The route of a method in the JSON API. */
export interface JsonRoute {
  readonly verb: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** The path below the base URL. A name in braces is a field of the request. */
  readonly path: string;
  /** Additional paths of the method, with fewer path parameters. */
  readonly otherPaths: readonly string[];
  /** Whether the fields that are not in the path are sent as a JSON body. If not, they are query parameters. */
  readonly hasBody: boolean;
  /** The field of the response that is sent as the body. If absent, the whole response is the body. */
  readonly responseField?: string;
}

/**
 * Returns the JSON route that a method's `google.api.http` option declares, or `undefined` if only RPC protocols serve
 * the method.
 */
export function jsonRouteOf(method: DescMethod): JsonRoute | undefined {
  const { pattern, body, responseBody, additionalBindings } = getOption(method, http);
  if (pattern.case === undefined) return undefined;
  return {
    verb: pattern.case.toUpperCase() as JsonRoute['verb'],
    path: pattern.value,
    otherPaths: additionalBindings.flatMap(({ pattern }) => pattern.value ?? []),
    hasBody: body !== '',
    ...(responseBody === '' ? {} : { responseField: responseBody }),
  };
}

/** Returns the kind of account that may call a method. */
export function callerOf(method: DescMethod): 'merchant' | 'checkout' {
  const { caller } = getOption(method, operation);
  if (caller === Caller.MERCHANT) return 'merchant';
  if (caller === Caller.CHECKOUT) return 'checkout';
  throw new Error(`${method.name} declares no caller`);
}

/** Returns the error codes that a method can return in addition to those that every method can return. */
export function errorsOf(method: DescMethod): readonly string[] {
  return getOption(method, operation).errors;
}

/** Returns the maximum size of a method's request in bytes, or `undefined` for the gateway's default limit. */
export function messageBytesMaxOf(method: DescMethod): number | undefined {
  return getOption(method, operation).messageBytesMax || undefined;
}
