/** The doors at which one call can be made, in the order of the report. */
export const doors = ['json', 'connect', 'grpc-web', 'grpc'] as const;

export type Door = (typeof doors)[number];

/** Whether the door takes an order as binary Protobuf; the others take JSON text. */
export function isBinary(door: Door): boolean {
  return door === 'grpc' || door === 'grpc-web';
}

/** The path of `CreateOrder` below the base URL. */
export const createOrderPath = '/gateway.v1.OrderService/CreateOrder';

/** No request waits longer for its answer. The gateway's own budget is 5 s, so a healthy one always answers first. */
export const requestTimeoutMs = 10_000;

/** One call, ready to be sent. */
export interface OutgoingCall {
  readonly method: string;
  /** The path below the base URL; the JSON door alone knows another than its own. */
  readonly path: string | undefined;
  /** All headers or metadata that the caller chooses, with lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  /** The body as the JSON and Connect doors send it. */
  readonly bytes: Uint8Array<ArrayBuffer> | undefined;
  /** The body as the gRPC and gRPC-Web doors say it; `undefined` for a body that is text only. */
  readonly order: Readonly<Record<string, unknown>> | undefined;
}

/** An answer of `POST /order`. */
export interface HttpAnswer {
  readonly kind: 'http';
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** The body read as JSON; `undefined` when it is none. */
  readonly body: unknown;
  /** Headers and body as text, to look for what no answer may hold. */
  readonly text: string;
}

/** One field at fault, out of google.rpc.BadRequest. */
interface Violation {
  readonly field: string;
  readonly reason: string;
  readonly description: string;
}

/** An answer of an RPC door, in the words of gRPC whatever the protocol. */
export interface RpcAnswer {
  readonly kind: 'rpc';
  /** `OK`, or the canonical name of a gRPC status code such as `INVALID_ARGUMENT`. */
  readonly code: string;
  readonly message: string;
  /** Response headers and trailers together. */
  readonly metadata: Readonly<Record<string, string>>;
  /** The response message in Protobuf's JSON form, its int64 read as a number; `undefined` for a refusal. */
  readonly body: unknown;
  /** Out of google.rpc.ErrorInfo, when there is one. */
  readonly info:
    | { readonly reason: string; readonly domain: string; readonly requestId: string | undefined }
    | undefined;
  readonly violations: readonly Violation[];
  readonly text: string;
}

/** What a call came to; `none` when no answer arrived, or none that the protocol allows. */
export type Answer = HttpAnswer | RpcAnswer | { readonly kind: 'none'; readonly cause: string };

/** A caller at one door. */
export interface Client {
  readonly door: Door;
  /** Sends one call and gives its answer within {@link requestTimeoutMs}. Never rejects. */
  send(call: OutgoingCall): Promise<Answer>;
  /** Lets go of all connections. */
  close(): void;
}
