// The script of a payment page. The page also works without it. The script shows times in the customer's time zone, a
// countdown and a button that copies the link, and updates the page when its order changes
// (docs/decisions/062-pages-wait.md).

const pauseMs = 5_000;
const pauseAfterErrorMs = 30_000;

let main;
let expiresAtMs;
let pendingRequest;
let lastRequestAtMs = -pauseMs;
let nextRequestTimer;

function showPage(newMain) {
  main = newMain;
  const { locale } = main.dataset;
  for (const time of main.querySelectorAll('time')) {
    const date = new Date(time.dateTime);
    time.textContent = new Intl.DateTimeFormat(locale, { dateStyle: time.dataset.date, timeStyle: 'short' }).format(
      date,
    );
    const parts = new Intl.DateTimeFormat(locale, { timeZoneName: 'short' }).formatToParts(date);
    const zone = parts.find(({ type }) => type === 'timeZoneName').value;
    const texts = document.createNodeIterator(time.closest('p'), NodeFilter.SHOW_TEXT);
    for (let text = texts.nextNode(); text; text = texts.nextNode()) text.data = text.data.replace('UTC', zone);
  }
  const remaining = main.querySelector('[data-left-ms]');
  expiresAtMs = remaining && Date.now() + Number(remaining.dataset.leftMs);
  const copyButton = main.querySelector('[data-copied]');
  if (copyButton && navigator.clipboard) {
    copyButton.hidden = false;
    copyButton.onclick = async () => {
      await navigator.clipboard.writeText(new URL(main.dataset.page || location.pathname, location.origin).href);
      copyButton.textContent = copyButton.dataset.copied;
    };
  }
}

function countDown() {
  const remaining = main.querySelector('[data-left-ms]');
  if (!remaining || document.hidden || !Intl.DurationFormat) return;
  const seconds = Math.max(0, Math.ceil((expiresAtMs - Date.now()) / 1_000));
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  const days = Math.floor(hours / 24);
  const duration =
    days >= 2
      ? { days }
      : hours >= 12
        ? { hours }
        : hours > 0
          ? { hours, minutes: minutes % 60 }
          : { minutes, seconds: seconds % 60 };
  const options = { style: 'long', secondsDisplay: hours > 0 ? 'auto' : 'always' };
  remaining.textContent = new Intl.DurationFormat(main.dataset.locale, options).format(duration);
}

/**
 * Requests the page, and replaces it if its order has changed. The server waits up to 20 s for a change. Sends at most
 * one request every 5 s.
 */
async function requestChange() {
  clearTimeout(nextRequestTimer);
  if (pendingRequest || document.hidden || !main.dataset.version) return;
  const waitMs = lastRequestAtMs + pauseMs - performance.now();
  if (waitMs > 0) {
    nextRequestTimer = setTimeout(requestChange, waitMs);
    return;
  }
  lastRequestAtMs = performance.now();
  pendingRequest = new AbortController();
  try {
    const headers = { accept: 'text/html', prefer: 'wait=20', 'if-none-match': main.dataset.version };
    const { signal } = pendingRequest;
    const response = await fetch((main.dataset.page || location.pathname) + location.search, { headers, signal });
    if (response.status === 200) replacePage(new DOMParser().parseFromString(await response.text(), 'text/html'));
    else if (response.status !== 304) lastRequestAtMs += pauseAfterErrorMs;
  } catch {
    // The page was hidden, or the server cannot be reached.
  }
  pendingRequest = undefined;
  requestChange();
}

function replacePage(page) {
  document.title = page.title;
  const newMain = page.querySelector('main');
  main.replaceWith(newMain);
  showPage(newMain);
  // Makes a screen reader read the changed page.
  newMain.focus({ preventScroll: true });
}

document.addEventListener('visibilitychange', () => {
  if (document.hidden) pendingRequest?.abort();
  else {
    countDown();
    requestChange();
  }
});
showPage(document.querySelector('main'));
countDown();
setInterval(countDown, 1_000);
// Waits for the first paint, which the request would delay on a slow connection.
nextRequestTimer = setTimeout(requestChange, 1_000);
