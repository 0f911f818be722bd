import type { Brand, Logo } from '@order-gateway/domain/accounts/brand';
import type { BaseUrl } from '@order-gateway/domain/links/payment-link';

/** The path of a logo below the base URL. It never shows another image, because it holds the digest of the image. */
export function logoPath({ digest, type }: Logo): string {
  return `/logos/${digest}.${type}`;
}

/** A brand as the API returns it. */
export function brandResponse({ logo, color, ...others }: Brand, baseUrl: BaseUrl) {
  return {
    logo_url: logo === null ? undefined : `${baseUrl}${logoPath(logo)}`,
    color: color ?? undefined,
    support_email: others.support_email ?? undefined,
    support_url: others.support_url ?? undefined,
    terms_url: others.terms_url ?? undefined,
    privacy_url: others.privacy_url ?? undefined,
  };
}
