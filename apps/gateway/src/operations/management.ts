import type { DescMethodUnary } from '@bufbuild/protobuf';
import type { Merchant } from '@order-gateway/domain/accounts/account';
import type { Failure } from '@order-gateway/domain/failure';
import { missing } from '@order-gateway/domain/fields/check-field';
import { failed, type Result, success } from '@order-gateway/domain/result';
import type { Managed, MerchantManagement } from '@order-gateway/postgres/merchant-management';
import type { Caller, Members, Operation, OperationDeps, Reply } from './operation.ts';
import { storageFailure } from './retry-after.ts';

/** Works on what merchants manage, within the time of the call. */
export type Manage = <Value>(work: (managed: Managed) => Promise<Value>) => Promise<Result<Value, Failure>>;

const reserved: Failure = {
  kind: 'permission_denied',
  reason: 'The operator of this gateway manages webhook endpoints, client secrets and brands. Ask the operator.',
};

/** An operation by which merchants manage something themselves, which the operator can reserve. */
export function managementOperation(
  { management }: Pick<OperationDeps, 'management'>,
  method: DescMethodUnary,
  handle: (members: Members, caller: Caller<Merchant>, manage: Manage) => Promise<Result<Reply, Failure>>,
): Operation {
  return {
    method,
    async handle(members, caller: Caller<Merchant>) {
      return management === undefined ? failed(reserved) : handle(members, caller, managing(management, caller));
    },
  };
}

function managing(management: MerchantManagement, caller: Caller<Merchant>): Manage {
  return async (work) => {
    const outcome = await management.perform(caller, work, caller.timeLeftMs());
    if (outcome.kind === 'done') return success(outcome.value);
    return failed(outcome.kind === 'unauthenticated' ? outcome : storageFailure(outcome.kind));
  };
}

/** What an id in a request refers to. */
type Unknown = 'webhook_endpoint' | 'event' | 'client_secret';

/** Reads an id of a request. Text of another form can't exist, so it is not looked up; `unknown` says what it was for. */
export function readId(members: Members, field: string, form: RegExp, unknown: Unknown): Result<string, Failure> {
  const value = members[field];
  if (value === undefined || value === null || value === '') {
    return failed({ kind: 'invalid_request', errors: [{ field, ...missing }] });
  }
  if (typeof value !== 'string') {
    return failed({ kind: 'invalid_request', errors: [{ field, code: 'wrong_type', message: 'must be a string' }] });
  }
  return form.test(value) ? success(value) : failed(notFound(unknown));
}

export function notFound(unknown: Unknown): Failure {
  return { kind: 'not_found', unknown };
}
