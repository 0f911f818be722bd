import { BrandService } from '@order-gateway/contract/gateway/v1/brand_service_pb';
import { type Brand, brandTextsOf, type Logo, noBrand, parseBrand } from '@order-gateway/domain/accounts';
import type { BaseUrl } from '@order-gateway/domain/links';
import { type FieldError, parseCompleteList } from '@order-gateway/domain/requests';
import { failed, type Result, success } from '@order-gateway/domain/result';
import type { Operation } from '../calls/operation.ts';
import { managementOperations } from './management.ts';
import type { OperationDeps } from './service.ts';

export function brandOperations(deps: Pick<OperationDeps, 'management' | 'baseUrl' | 'checkLogo'>): Operation[] {
  const brandReply = (brand: Brand = noBrand) =>
    success({ body: { brand: brandResponse(brand, deps.baseUrl()) }, outcome: 'ok' });
  return managementOperations(deps, BrandService, {
    async getBrand(members, { clientId, manage }) {
      const parsed = parseCompleteList(members);
      if (!parsed.ok) return parsed;
      return manage(async (managed) => brandReply(await managed.findBrand(clientId)));
    },

    async updateBrand(members, { clientId, timeLeftMs, manage }) {
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
      return manage(async (managed) => {
        if (isChange) await managed.updateBrand(clientId, change);
        return brandReply(await managed.findBrand(clientId));
      });
    },
  });
}

/**
 * Reads an image, which is bytes in Protobuf and base64 in JSON. Returns `undefined` if it was not sent, and `null` if
 * it is empty.
 */
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

/**
 * Returns the path of a logo below the base URL. A path always refers to the same image, because it contains the
 * image's digest.
 */
export function logoPath({ digest, type }: Logo): string {
  return `/logos/${digest}.${type}`;
}

export type BrandResponse = ReturnType<typeof brandResponse>;

/** Builds the API's form of a brand. */
export function brandResponse(brand: Brand, baseUrl: BaseUrl) {
  return {
    logo_url: brand.logo === null ? undefined : `${baseUrl}${logoPath(brand.logo)}`,
    ...brandTextsOf((name) => brand[name] ?? undefined),
  };
}
