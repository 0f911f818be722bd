// The script of the console. Every page also works without it. The script shows and sends times in the reader's time
// zone, and shows the buttons that copy and share a link.

const { lang } = document.documentElement;
const timeFormat = new Intl.DateTimeFormat(lang, { dateStyle: 'medium', timeStyle: 'short' });

function zoneAt(date) {
  const parts = new Intl.DateTimeFormat(lang, { timeZoneName: 'short' }).formatToParts(date);
  return parts.find(({ type }) => type === 'timeZoneName').value;
}

// The other times are days.
for (const time of document.querySelectorAll('time[datetime*="T"]')) {
  const date = new Date(time.dateTime);
  time.textContent = `${timeFormat.format(date)} ${zoneAt(date)}`;
}

for (const input of document.querySelectorAll('input[type="datetime-local"]')) {
  const date = new Date(`${input.defaultValue}Z`);
  if (!Number.isNaN(date.valueOf())) {
    input.value = new Date(date - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
  }
  const label = input.labels[0].firstElementChild;
  label.textContent = label.textContent.replace('UTC', zoneAt(new Date()));
  input.form.addEventListener('formdata', ({ formData }) => {
    if (input.value) formData.set(input.name, new Date(input.value).toISOString());
  });
}

for (const button of document.querySelectorAll('[data-copy]')) {
  if (!navigator.clipboard) continue;
  button.hidden = false;
  button.onclick = async () => {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = button.dataset.done;
  };
}

for (const button of document.querySelectorAll('[data-share]')) {
  if (!navigator.share) continue;
  button.hidden = false;
  // The browser rejects the promise if the person closes its dialog.
  button.onclick = () => navigator.share({ text: button.dataset.share }).catch(() => {});
}
