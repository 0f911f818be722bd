import type { DescMethod } from '@bufbuild/protobuf';
import type { Merchant } from '@order-gateway/domain/accounts';
import type { Failure } from '@order-gateway/domain/failure';
import type { Managed, MerchantManagement } from '@order-gateway/domain/management';
import { checkAnyText } from '@order-gateway/domain/requests';
import { failed, type Result, success } from '@order-gateway/domain/result';
import type { Caller, Members, Operation, Reply } from '../calls/operation.ts';
import { storageFailure } from '../calls/store-failure.ts';
import { type Handlers, type OperationDeps, operationsOf } from './service.ts';

/** A merchant that manages its own endpoints, secrets or brand. */
export interface Manager extends Caller<Merchant> {
  /** Performs work on the merchant's settings, within the time limit of the call. */
  manage<Value>(work: (managed: Managed) => Promise<Result<Value, Failure>>): Promise<Result<Value, Failure>>;
}

type ManagementHandler = (members: Members, manager: Manager) => Promise<Result<Reply, Failure>>;

const reserved: Failure = {
  kind: 'permission_denied',
  reason: 'The operator of this gateway manages webhook endpoints, client secrets and brands. Ask the operator.',
};

/**
 * Creates the operations of a service with which merchants manage their own settings. If the operator has reserved
 * these operations (SELF_SERVICE=off), they are rejected.
 */
export function managementOperations<Methods extends Readonly<Record<string, DescMethod>>>(
  { management }: Pick<OperationDeps, 'management'>,
  service: { readonly method: Methods },
  handlers: Handlers<Methods, Manager>,
): Operation[] {
  const entries = Object.entries<ManagementHandler>(handlers);
  const operations = entries.map(([name, handle]): [string, Operation['handle']] => [
    name,
    async (members, caller) =>
      management === undefined ? failed(reserved) : handle(members, managerOf(management, caller as Caller<Merchant>)),
  ]);
  return operationsOf(service, Object.fromEntries(operations) as unknown as Handlers<Methods>);
}

function managerOf(management: MerchantManagement, caller: Caller<Merchant>): Manager {
  return {
    ...caller,
    async manage(work) {
      const outcome = await management.perform({ ...caller, merchantId: caller.account.id }, work, caller.timeLeftMs());
      if (outcome.kind === 'done') return outcome.value;
      return failed(outcome.kind === 'unauthenticated' ? outcome : storageFailure(outcome.kind));
    },
  };
}

/** The kind of resource to which an id in a request refers. */
type ResourceKind = 'webhook_endpoint' | 'event' | 'client_secret';

/**
 * Reads the id of a resource from a request. A string that does not match `form` can't be an existing id, so the result
 * is `not_found` without a lookup.
 */
export function readId(members: Members, field: string, form: RegExp, kind: ResourceKind): Result<string, Failure> {
  const id = checkAnyText(members[field]);
  if (typeof id === 'object') return failed({ kind: 'invalid_request', errors: [{ field, ...id }] });
  return form.test(id) ? success(id) : failed(notFound(kind));
}

export function notFound(kind: ResourceKind): Failure {
  return { kind: 'not_found', unknown: kind };
}
