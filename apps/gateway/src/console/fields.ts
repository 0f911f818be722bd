import type { FieldError } from '@order-gateway/domain/requests';
import { html } from 'hono/html';
import type { Html } from '../payment-page/html-page.ts';

interface Field {
  readonly name: string;
  readonly label: string | Html;
  /** What was typed, or is suggested. */
  readonly value?: string | null | undefined;
  readonly errors?: readonly FieldError<string>[];
  readonly type?: 'text' | 'datetime-local' | 'multiline' | 'file';
  /** How a browser may fill the field in (HTML, 4.10.18.7). Absent: not at all, because the data is not the person's own. */
  readonly autocomplete?: string;
  readonly choices?: Readonly<Record<string, string>>;
  readonly isWide?: boolean;
}

/** A field of a form with its label and, beside it, the API's error. */
export function fieldOf({
  name,
  label,
  value,
  errors = [],
  type = 'text',
  autocomplete = 'off',
  ...field
}: Field): Html {
  const error = errors.find((one) => one.field === name);
  const text = value ?? '';
  const invalid = error === undefined ? '' : html` aria-invalid="true" aria-describedby="${name}-error"`;
  const attributes = html` name="${name}" autocomplete="${autocomplete}"${invalid}`;
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
