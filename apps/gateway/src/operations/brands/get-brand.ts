import { BrandService } from '@order-gateway/contract/gateway/v1/brand_service_pb';
import { noBrand } from '@order-gateway/domain/accounts/brand';
import { parseCompleteList } from '@order-gateway/domain/requests/list-parameters';
import { failed, success } from '@order-gateway/domain/result';
import { managementOperation } from '../management.ts';
import type { Operation, OperationDeps } from '../operation.ts';
import { brandResponse } from './brand-response.ts';

export function getBrandOperation(deps: Pick<OperationDeps, 'management' | 'baseUrl'>): Operation {
  return managementOperation(deps, BrandService.method.getBrand, async (members, { clientId }, manage) => {
    const parsed = parseCompleteList(members);
    if (!parsed.ok) return failed({ kind: 'invalid_request', errors: parsed.failure });
    const found = await manage((managed) => managed.findBrand(clientId));
    if (!found.ok) return found;
    return success({ body: { brand: brandResponse(found.value ?? noBrand, deps.baseUrl()) }, outcome: 'ok' });
  });
}
