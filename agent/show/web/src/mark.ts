import { setMarker } from './api';
import { el } from './dom';

/** The key of the token, which is stored until the tab is closed. */
const stored = 'benchwatch token';

function token(): string {
  try {
    return sessionStorage.getItem(stored) ?? '';
  } catch {
    return ''; // storage is forbidden: the user is asked each time
  }
}

function keep(value: string): void {
  try {
    if (value) sessionStorage.setItem(stored, value);
    else sessionStorage.removeItem(stored);
  } catch {
    // asked again next time
  }
}

/** A form that puts a marker on a run's time axis now. */
export function markForm(id: string): HTMLElement {
  const text = el('input', { type: 'text', maxlength: '500', required: '', 'aria-label': 'Text of the marker', placeholder: 'What happens now' });
  const secret = el('input', { type: 'password', autocomplete: 'off', 'aria-label': 'Token', placeholder: 'token of webhook_token_file' });
  const send = el('button', { type: 'submit' }, 'Set');
  const said = el('span', { class: 'hint', role: 'status' });
  const form = el('form', {}, text, secret, send, said);
  secret.hidden = token() !== '';
  form.addEventListener('submit', (e) => {
    e.preventDefault();
    const t = secret.value || token();
    if (!t) {
      secret.hidden = false;
      secret.focus();
      return;
    }
    send.disabled = true;
    setMarker(id, text.value, t)
      .then(() => {
        keep(t);
        secret.value = '';
        secret.hidden = true;
        text.value = '';
        said.textContent = 'set';
      })
      .catch((e: unknown) => {
        const problem = e instanceof Error ? e.message : String(e);
        if (problem === 'token') {
          keep('');
          secret.value = '';
          secret.hidden = false;
          secret.focus();
        }
        said.textContent = problem === 'token' ? 'the token is wrong' : problem;
      })
      .finally(() => {
        send.disabled = false;
      });
  });
  return el('details', { class: 'mark' }, el('summary', {}, 'Set a marker'), form);
}
