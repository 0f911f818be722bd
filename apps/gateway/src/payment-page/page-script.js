// The script of a payment page. Without it, the page is complete: what it adds is the customer's time zone, a countdown, a button that
// copies the link, and a page that changes with its order (docs/decisions/062-pages-wait.md).

const pauseMs = 5_000;
const pauseAfterErrorMs = 30_000;

let main;
let expiresAtMs;
let asking;
let askedAt = -pauseMs;
let nextAsk;

function showPage(shown) {
  main = shown;
  const { locale } = main.dataset;
  for (const time of main.querySelectorAll('time')) {
    const at = new Date(time.dateTime);
    time.textContent = new Intl.DateTimeFormat(locale, { dateStyle: time.dataset.date, timeStyle: 'short' }).format(at);
    const parts = new Intl.DateTimeFormat(locale, { timeZoneName: 'short' }).formatToParts(at);
    const zone = parts.find(({ type }) => type === 'timeZoneName').value;
    const texts = document.createNodeIterator(time.closest('p'), NodeFilter.SHOW_TEXT);
    for (let text = texts.nextNode(); text; text = texts.nextNode()) text.data = text.data.replace('UTC', zone);
  }
  const left = main.querySelector('[data-left-ms]');
  expiresAtMs = left && Date.now() + Number(left.dataset.leftMs);
  const copy = main.querySelector('[data-copied]');
  if (copy && navigator.clipboard) {
    copy.hidden = false;
    copy.onclick = async () => {
      await navigator.clipboard.writeText(new URL(main.dataset.page || location.pathname, location.origin).href);
      copy.textContent = copy.dataset.copied;
    };
  }
}

function countDown() {
  const left = main.querySelector('[data-left-ms]');
  if (!left || document.hidden || !Intl.DurationFormat) return;
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
  left.textContent = new Intl.DurationFormat(main.dataset.locale, options).format(duration);
}

/** Asks for the page with a new state, which the server sends once there is one, at most every 5 s. */
async function ask() {
  clearTimeout(nextAsk);
  if (asking || document.hidden || !main.dataset.version) return;
  const pause = askedAt + pauseMs - performance.now();
  if (pause > 0) {
    nextAsk = setTimeout(ask, pause);
    return;
  }
  askedAt = performance.now();
  asking = new AbortController();
  try {
    const headers = { accept: 'text/html', prefer: 'wait=20', 'if-none-match': main.dataset.version };
    const { signal } = asking;
    const response = await fetch((main.dataset.page || location.pathname) + location.search, { headers, signal });
    if (response.status === 200) change(new DOMParser().parseFromString(await response.text(), 'text/html'));
    else if (response.status !== 304) askedAt += pauseAfterErrorMs;
  } catch {
    // The page is hidden, or the server can't be reached.
  }
  asking = undefined;
  ask();
}

function change(page) {
  document.title = page.title;
  const next = page.querySelector('main');
  main.replaceWith(next);
  showPage(next);
  // A screen reader reads what has changed.
  next.focus({ preventScroll: true });
}

document.addEventListener('visibilitychange', () => {
  if (document.hidden) asking?.abort();
  else {
    countDown();
    ask();
  }
});
showPage(document.querySelector('main'));
countDown();
setInterval(countDown, 1_000);
// After the first paint, which a browser with a slow connection would otherwise delay.
nextAsk = setTimeout(ask, 1_000);
