import { type AmountHundredths, formatAmount } from '@order-gateway/domain/money';
import { type Html, withValue } from '@order-gateway/pages/html-page';
import { localAmount, localDeadline } from '@order-gateway/pages/localization';
import { backLink, payTitle } from '@order-gateway/pages/merchant-page';
import { qrCodeSvg } from '@order-gateway/pages/qr-code';
import type { FastifyInstance } from 'fastify';
import { html, raw } from 'hono/html';
import type { AdvanceDeps } from '../attempts/advance.ts';
import { amountOf, OrderStatus } from '../gateway/gateway.ts';
import { inLanguage, languageFor, orderBody, sendMessage, sendPage, textsOf } from '../html/layout.ts';
import { creditorReferenceOf } from '../providers/transfer/creditor-reference.ts';
import { epcQrContent } from '../providers/transfer/epc-qr-code.ts';
import { inGroups } from '../providers/transfer/mod97.ts';
import { transfer, transferAccountOf } from '../providers/transfer/transfer.ts';
import { openTransfers } from '../providers/transfer/transfers.ts';

/** Without the script, customers select the values by hand. */
const copyScript = `for (const button of document.querySelectorAll('.copy')) {
  if (!navigator.clipboard) continue;
  button.hidden = false;
  button.onclick = async () => {
    await navigator.clipboard.writeText(button.value);
    button.textContent = button.dataset.copied;
  };
}`;

/** Adds the page that says how to transfer the amount of an order. */
export function transferRoutes(app: FastifyInstance, { store, gateway, accountOf }: AdvanceDeps): void {
  app.get<{ Params: { orderToken: string } }>('/transfer/:orderToken', async (request, reply) => {
    const { orderToken } = request.params;
    const order = await gateway.resolve(orderToken);
    if (order === undefined) return sendMessage(reply, 'unknown');
    if (order.orderStatus !== OrderStatus.UN_PAID) return reply.redirect(order.returnUrl, 303);
    const { locale, chosen: language } = languageFor(request, order.customerLocale);
    const reference = creditorReferenceOf(Number(order.serviceOrderId));
    const connections = await store.connectionsOf(order.merchantId);
    const connection = connections.find(({ provider }) => provider === transfer.name);
    const chosen = await openTransfers(store).find(reference);
    if (connection === undefined || chosen?.orderToken !== orderToken)
      return reply.redirect(inLanguage(`/pay/${orderToken}`, language), 303);
    const { iban = '', name } = transferAccountOf((await accountOf(connection.connectionId)).secrets);
    const amount: AmountHundredths = amountOf(order);
    const texts = textsOf(locale);
    const row = (label: string, value: string, shown: Html | string = value) =>
      html`<div><dt>${label}</dt><dd><bdi>${shown}</bdi> <button type="button" class="copy" value="${value}" data-copied="${texts.copied}" hidden>${texts.copy}</button></dd></div>`;
    const qr = epcQrContent({ name, iban, amount, reference });
    const code =
      qr === undefined
        ? ''
        : html`<div class="scan block"><div class="qr">${raw(qrCodeSvg(qr, 'medium'))}</div><p>${texts.transferScan}</p></div>`;
    const within = order.orderExpiresAt && localDeadline(Date.parse(order.orderExpiresAt), Date.now(), locale);
    const deadline = within ? html`<p>${withValue(texts.payWithin, within.duration, within.time)}</p>` : '';
    const content = html`<h2>${texts.transfer}</h2>
<dl>
${row(texts.accountHolder, name)}
${row('IBAN', iban, inGroups(iban))}
${row(texts.amount, formatAmount(amount), localAmount(amount, order.orderCurrency, locale))}
${row(texts.reference, reference, inGroups(reference))}
</dl>
${code}
${deadline}
<p>${texts.transferTime}</p>
<p>${withValue(texts.transferEnd, order.merchantName)}</p>
${backLink(order.returnUrl, texts)}`;
    const title = payTitle(order.merchantName, texts);
    return sendPage(reply, { locale, title, body: orderBody(order, locale, content), order, script: copyScript });
  });
}
