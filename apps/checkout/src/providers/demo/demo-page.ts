import type { FastifyInstance } from 'fastify';
import { html } from 'hono/html';
import { isFormOf } from '../../html/form-origin.ts';
import { languageFor, sendMessage, sendPage, textsOf } from '../../html/layout.ts';
import type { Store } from '../../store/store.ts';

/** How much later than the customer's return a late payment is seen. */
const lateMs = 15_000;

const outcomes = { succeed: 'authorised', late: 'authorised', decline: 'declined', abandon: undefined } as const;

/** Adds the page of the demo provider, on which its user chooses what a test payment does. */
export function demoRoutes(
  app: FastifyInstance,
  { store, baseUrl }: { readonly store: Store; readonly baseUrl: () => string },
  wake: (attemptId: string) => Promise<unknown>,
): void {
  app.get<{ Params: { attemptId: string } }>('/demo/:attemptId', async (request, reply) => {
    const { attemptId } = request.params;
    const [payment, attempt] = await Promise.all([store.findDemoPayment(attemptId), store.find(attemptId)]);
    if (payment === undefined) return sendMessage(reply, 'unknown');
    const { locale } = languageFor(request, attempt?.locale);
    const texts = textsOf(locale);
    const buttons = Object.keys(outcomes).map(
      (outcome, index) =>
        html`<button class="button${index === 0 ? ' main' : ''}" name="outcome" value="${outcome}">${texts[outcome as keyof typeof outcomes]}</button>`,
    );
    const body = html`<p class="test">${texts.testMode}</p><h1>${texts.demo}</h1><p>${texts.demoText}</p>
<form class="actions" method="post" action="/demo/${payment.sessionId}">${buttons}</form>`;
    return sendPage(reply, { locale, title: texts.demo, body });
  });

  app.post<{ Params: { attemptId: string }; Body: URLSearchParams | undefined }>(
    '/demo/:attemptId',
    async (request, reply) => {
      const { attemptId } = request.params;
      const outcome = request.body?.get('outcome') ?? '';
      if (!isFormOf([baseUrl()], request.headers) || !Object.hasOwn(outcomes, outcome))
        return reply.redirect(`/demo/${attemptId}`, 303);
      if (outcome === 'abandon') return reply.redirect(`/back/${attemptId}?left=1`, 303);
      const state = outcomes[outcome as 'succeed'];
      const authorisedAt = new Date(Date.now() + (outcome === 'late' ? lateMs : 0));
      await store.changeDemoPayment(attemptId, 'open', {
        state,
        ...(state === 'authorised' && { authorisedAt }),
      });
      // A provider would send a webhook.
      void wake(attemptId).catch(() => {});
      return reply.redirect(`/back/${attemptId}`, 303);
    },
  );
}
