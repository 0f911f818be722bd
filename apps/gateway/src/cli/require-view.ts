import { StartError } from '@order-gateway/runtime/process';

const timeoutMs = 5_000;

/**
 * Rejects with the message if a gateway does not serve this page, so that a command prints no link to a missing page.
 * The gateway may not be reachable from here; then its pages are not known to be missing.
 */
export async function requireView(url: URL, message: string): Promise<void> {
  const signal = AbortSignal.timeout(timeoutMs);
  const response = await fetch(url, { redirect: 'manual', signal }).catch(() => undefined);
  await response?.body?.cancel();
  if (response?.status === 404) throw new StartError(message);
}
