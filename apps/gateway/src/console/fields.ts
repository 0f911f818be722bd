import type { FieldError } from '@order-gateway/domain/requests';
import { html } from 'hono/html';
import type { Html } from '../payment-page/html-page.ts';

interface Field {
  readonly name: string;
  readonly label: string | Html;
  /** The text that the person entered, or a suggestion. */
  readonly value?: string | null | undefined;
  readonly errors?: readonly FieldError<string>[];
  readonly type?: 'text' | 'datetime-local' | 'multiline' | 'file';
  readonly choices?: Readonly<Record<string, string>>;
  readonly isWide?: boolean;
}

/** Renders a field of a form with its label and, if the API rejected its value, the error. */
export function fieldOf({ name, label, value, errors = [], type = 'text', ...field }: Field): Html {
  const error = errors.find((candidate) => candidate.field === name);
  const text = value ?? '';
  const invalid = error === undefined ? '' : html` aria-invalid="true" aria-describedby="${name}-error"`;
  // Keeps the browser from filling in the data of the person who is signed in, because most fields are about customers.
  const attributes = html` name="${name}" autocomplete="off"${invalid}`;
  const input = field.choices
    ? html`<select${attributes}>${Object.entries(field.choices).map(
        ([choice, shown]) => html`<option value="${choice}"${choice === text ? html` selected` : ''}>${shown}</option>`,
      )}</select>`
    : type === 'multiline'
      ? html`<textarea rows="3"${attributes}>
${text}</textarea>`
      : html`<input type="${type}"${type === 'file' ? '' : html` value="${text}"`}${attributes}>`;
  return html`<div${field.isWide ? html` class="wide"` : ''}><label><span>${label}</span> ${input}</label>${
    error === undefined ? '' : html`<p class="error" id="${name}-error">${error.message} (${error.code})</p>`
  }</div>`;
}
