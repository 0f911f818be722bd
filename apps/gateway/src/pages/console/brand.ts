import { BrandService } from '@order-gateway/contract/gateway/v1/brand_service_pb';
import { messageBytesMaxOf } from '@order-gateway/contract/operations';
import { brandFieldNames, type InstructionChange, logoLimits } from '@order-gateway/domain/accounts';
import type { Failure } from '@order-gateway/domain/failure';
import type { Html } from '@order-gateway/pages/html-page';
import { html } from 'hono/html';
import type { BrandResponse } from '../../operations/brands.ts';
import { fieldOf } from './forms.ts';
import { filled, timeOf } from './layout.ts';
import {
  failurePage,
  failureText,
  type Page,
  page,
  type Response,
  redirect,
  storedResult,
  type Visit,
} from './visit.ts';

const { method } = BrandService;
const path = '/brand';

/** The page on which a merchant changes the look of its payment pages. */
export const brandPages: readonly Page[] = [
  { method: 'GET', path, respond: (visit) => brandPage(visit) },
  { method: 'POST', path, fileBytesMax: messageBytesMaxOf(method.updateBrand), respond: updateBrand },
];

async function brandPage(visit: Visit, failure?: Failure): Promise<Response> {
  const { texts, form, link, formToken, perform } = visit;
  const found = await perform<{ readonly brand: BrandResponse }>(method.getBrand, {});
  if (!found.ok) return failurePage(visit, found.failure);
  const changes = storedResult(await visit.sessions.listInstructionChanges(visit.clientId, visit.call.timeLeftMs()));
  if (!changes.ok) return failurePage(visit, changes.failure);
  const { brand } = found.value;
  const errors = failure !== undefined && 'errors' in failure ? failure.errors : [];
  const logoLabel = filled(texts.logo, { kilobytes: logoLimits.bytes / 1_024, pixels: logoLimits.pixels });
  const logo =
    brand.logo_url === undefined
      ? ''
      : html`<p><a href="${brand.logo_url}">${texts.currentLogo}</a></p>
<label class="box"><input type="checkbox" name="remove_logo" value="1"> ${texts.removeLogo}</label>`;
  const problem = failure === undefined || errors.length > 0 ? '' : failureText(failure);
  const content = html`<p>${texts.brandText}</p>
${problem === '' ? '' : html`<p class="error" role="alert">${problem}</p>`}
<form class="card" method="post" enctype="multipart/form-data" action="${link(path)}">${formToken}
<div class="fields">
${brandFieldNames.map((name) => {
  const look = name === 'payment_instructions' ? ({ type: 'multiline', isWide: true } as const) : undefined;
  return fieldOf({ name, label: texts[name], value: form.get(name) ?? brand[name], errors, ...look });
})}
${fieldOf({ name: 'logo', label: logoLabel, type: 'file', errors, isWide: true })}
<div class="wide">${logo}</div>
</div>
<p><button class="button main">${texts.save}</button></p>
</form>
${changes.value.length === 0 ? '' : changesOf(visit, changes.value)}`;
  return page(texts.brand, content, failure);
}

/** Lists who changed the payment instructions, because a person who changes them decides where customers send money. */
function changesOf({ texts, language, clientId }: Visit, changes: readonly InstructionChange[]): Html {
  const nameOf = (actor: string) => {
    if (actor === clientId) return texts.byApi;
    return actor.startsWith('console:') ? actor.slice('console:'.length) : texts.byOperator;
  };
  return html`<section class="card"><h2>${texts.instructionChanges}</h2>
<ul>${changes.map(
    ({ createdAtMs, actor, instructions }) =>
      html`<li>${timeOf(createdAtMs, language)} <bdi>${nameOf(actor)}</bdi>: <bdi>${instructions || texts.instructionsRemoved}</bdi></li>`,
  )}</ul>
</section>`;
}

async function updateBrand(visit: Visit): Promise<Response> {
  const { form, files } = visit;
  // Browsers send line breaks as CR LF, which would count twice.
  const fields = Object.fromEntries(brandFieldNames.map((name) => [name, form.get(name)?.replaceAll('\r\n', '\n')]));
  const logo = form.has('remove_logo') ? '' : files.get('logo');
  const updated = await visit.perform(method.updateBrand, { ...fields, logo });
  return updated.ok ? redirect(path) : brandPage(visit, updated.failure);
}
