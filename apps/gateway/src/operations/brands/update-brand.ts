import { BrandService } from '@order-gateway/contract/gateway/v1/brand_service_pb';
import { noBrand, parseBrand } from '@order-gateway/domain/accounts/brand';
import type { FieldError } from '@order-gateway/domain/fields/field-rules';
import { failed, type Result, success } from '@order-gateway/domain/result';
import { managementOperation } from '../management.ts';
import type { Operation, OperationDeps } from '../operation.ts';
import { brandResponse } from './brand-response.ts';

export function updateBrandOperation(deps: Pick<OperationDeps, 'management' | 'baseUrl' | 'checkLogo'>): Operation {
  return managementOperation(
    deps,
    BrandService.method.updateBrand,
    async (members, { clientId, timeLeftMs }, manage) => {
      const texts = parseBrand(members);
      const image = readImage(members.logo);
      if (!texts.ok || !image.ok) {
        const errors = [...(image.ok ? [] : [image.failure]), ...(texts.ok ? [] : texts.failure)];
        return failed({ kind: 'invalid_request', errors });
      }
      const logo = image.value && (await deps.checkLogo(clientId, image.value, timeLeftMs));
      if (logo?.ok === false) return logo;
      const change = { texts: texts.value, logo: image.value === null ? null : logo?.value };
      const isChange = change.logo !== undefined || Object.keys(change.texts).length > 0;
      const updated = await manage(async (managed) => {
        if (isChange) await managed.updateBrand(clientId, change);
        return managed.findBrand(clientId);
      });
      if (!updated.ok) return updated;
      return success({ body: { brand: brandResponse(updated.value ?? noBrand, deps.baseUrl()) }, outcome: 'ok' });
    },
  );
}

/** Reads an image: bytes in Protobuf, base64 in JSON. `undefined`: not sent. `null`: empty. */
function readImage(value: unknown): Result<Uint8Array | null | undefined, FieldError<string>> {
  if (value === undefined || value === null) return success(undefined);
  const bytes = typeof value === 'string' ? bytesOf(value) : value;
  if (!(bytes instanceof Uint8Array)) {
    const code = typeof value === 'string' ? 'bad_format' : 'wrong_type';
    return failed({ field: 'logo', code, message: 'must be a string in base64' });
  }
  return success(bytes.length === 0 ? null : bytes);
}

function bytesOf(base64: string): Uint8Array | undefined {
  try {
    return Uint8Array.fromBase64(base64);
  } catch {
    return undefined;
  }
}
